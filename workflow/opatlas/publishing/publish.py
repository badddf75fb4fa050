"""Publishes a dataset: builds its directory beside the published one and swaps it in with one rename."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opatlas.checks import evidence
from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import BLOCKING
from opatlas.checks.report import RESULT as CHECKS
from opatlas.config.datasets import RESULTS
from opatlas.errors import UserError
from opatlas.files import disk_error, swap_in, sync_folder
from opatlas.planning.dataset import PlannedDataset
from opatlas.publishing import collection_meta, provenance, report
from opatlas.publishing.source import revision
from opatlas.staleness.fingerprint import SHORT
from opatlas.tables.merge import FAILURES

DATASETS = RESULTS / ".datasets"
META = "collection_meta.yaml"
PROVENANCE = "provenance.json"
REPORT = "report.html"


def stamp_name(planned: PlannedDataset) -> str:
    """The file in a published directory that says which plan it is of."""
    return f".dataset-{planned.fingerprint[:SHORT]}"


def publish_dataset(planned: PlannedDataset, folder: Path, root: Path) -> str:
    """Publishes the checked tables of a folder; returns what to tell the user.

    UserError, with everything published left as it is, when a blocking check failed and partial datasets
    are not allowed, or when tables or checks are not those of this plan.
    """
    found = evidence.load(planned, folder)
    checks = _checks(planned, folder)
    reasons = [
        f"{finding['table']}: {finding['message']}".removeprefix(": ")
        for finding in checks["findings"]
        if finding["severity"] == BLOCKING
    ]
    _refuse(planned, found, reasons)
    contents = _contents(planned, found, folder, checks, reasons)
    directory = _build(root / DATASETS / f"{planned.dataset.name}-{planned.fingerprint[:SHORT]}", contents)
    (directory / stamp_name(planned)).write_text(planned.fingerprint + "\n")
    sync_folder(directory)
    swap_in(directory, root / planned.dataset.target)
    return _message(planned, found, reasons)


def _checks(planned: PlannedDataset, folder: Path) -> dict[str, Any]:
    path = folder / CHECKS
    try:
        checks: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        checked = checks["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); remove it and run again") from None
    if checked != planned.fingerprint:
        raise UserError(f"{path}: the checks are those of another plan; remove it and run again")
    return checks


def _refuse(planned: PlannedDataset, found: Evidence, reasons: list[str]) -> None:
    target = planned.dataset.target
    if found.broken:
        lines = [f"  {name}.parquet: {what}" for name, wrong in found.broken.items() for what in wrong]
        raise UserError("\n".join([f"{target}: is not published, its tables are damaged:", *lines]))
    if reasons and not planned.config.settings.allow_partial:
        lines = [f"  {reason}" for reason in reasons]
        hint = "publish.allow_partial: true in config/config.yaml publishes it with these reasons in it"
        raise UserError("\n".join([f"{target}: is not published, blocking checks failed:", *lines, hint]))


def _contents(
    planned: PlannedDataset, found: Evidence, folder: Path, checks: Mapping[str, Any], reasons: list[str]
) -> dict[str, bytes]:
    """Name -> content of every file of the dataset but the stamp."""
    contents = {f"{name}.parquet": _table(folder, name, found) for name in (*found.tables, FAILURES)}
    contents[CHECKS] = (folder / CHECKS).read_bytes()
    failures = Counter(found.failures["table"].to_pylist())
    meta = collection_meta.document(planned, found.record, failures, revision())
    contents[META] = collection_meta.text(meta)
    contents[REPORT] = report.page(found, checks, reasons).encode()
    document = provenance.document(planned, found.record, contents, reasons, revision())
    contents[PROVENANCE] = json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"
    return contents


def _table(folder: Path, name: str, found: Evidence) -> bytes:
    path = folder / f"{name}.parquet"
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != found.record["tables"][name]["sha256"]:
        raise UserError(f"{path}: is not the file that was merged; remove its folder and run again")
    return content


def _build(place: Path, contents: Mapping[str, bytes]) -> Path:
    """A directory with these files: `place`, or where another content has it, the next free name after it."""
    directory, number = place, 0
    while directory.exists():
        if _same(directory, contents):
            return directory
        number += 1
        directory = place.with_name(f"{place.name}.{number}")
    temporary = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        temporary.mkdir(parents=True)
        for name, content in contents.items():
            with (temporary / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        sync_folder(temporary)
        temporary.rename(directory)
        sync_folder(directory.parent)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise disk_error(directory, error) from None
    return directory


def _same(directory: Path, contents: Mapping[str, bytes]) -> bool:
    """Whether a directory holds exactly these files, beside its stamp."""
    names = {path.name for path in directory.iterdir() if not path.name.startswith(".")}
    return names == contents.keys() and all(
        (directory / name).read_bytes() == content for name, content in contents.items()
    )


def _message(planned: PlannedDataset, found: Evidence, reasons: list[str]) -> str:
    target = planned.dataset.target
    rows = sum(table.num_rows for table in found.tables.values())
    partial = ", PARTIAL" if reasons else ""
    lines = [f"Published {target}{partial}: {rows} rows, {found.failures.num_rows} failures"]
    lines += [f"  {target}/{name}.parquet  {table.num_rows} rows" for name, table in found.tables.items()]
    return "\n".join([*lines, f"  {target}/{REPORT}  what was measured, and how"])
