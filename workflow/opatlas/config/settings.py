"""config/config.yaml and --config: what a run is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from opatlas.config import checks
from opatlas.config.checks import Checks
from opatlas.config.document import LARGEST, Section, read_yaml
from opatlas.config.document import Mapping as YamlMapping
from opatlas.errors import Problems
from opatlas.measuring.settings import Settings as MeasureSettings

CONDITION = re.compile(r"^(?P<field>[a-z][a-z0-9_]*)(?P<sign><=|>=|=)(?P<value>[^=<>]+)$")
SUBSET_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
SMOKE_CASES = 4


@dataclass(frozen=True)
class Condition:
    """One comparison of a case field, as in tp=4, m<=64, kv_dtype=fp8|bfloat16."""

    field: str
    sign: str
    value: str

    def holds(self, actual: Any) -> bool:
        if self.sign == "=":
            return str(actual) in self.value.split("|")
        bound = int(self.value)
        return bool(actual <= bound if self.sign == "<=" else actual >= bound)


@dataclass(frozen=True)
class Subset:
    """A cut of a dataset, published beside it as @name."""

    name: str
    ops: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    cases: tuple[Condition, ...] = ()
    limit: int | None = None
    smoke: bool = False
    limit_per_op: int | None = None


@dataclass(frozen=True)
class RunSettings:
    """config.yaml as typed values.

    `overrides` are what --config says, but for `baseline`: a dataset does not depend on what it is compared
    with.
    """

    shard_minutes: float
    seed: int
    measure: MeasureSettings
    audit_share: float
    allow_partial: bool
    checks: Checks
    subset: Subset | None
    baseline: str = ""
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def publishing(self) -> dict[str, Any]:
        """What of these settings shapes a published dataset beside its rows."""
        return {
            "allow_partial": self.allow_partial,
            "checks": self.checks.record(),
        }


def load(path: Path, name: str, overrides: Mapping[str, Any], problems: Problems) -> RunSettings:
    """Reads the file with `overrides` (from --config) on top; every mistake goes to `problems`."""
    written: Any = None
    with problems.collecting():
        written = read_yaml(path, name)
    top = Section(_merged(written, overrides), name, problems)
    shard_minutes = top.number("shard_minutes", above=0)
    seed = top.integer("seed")
    measure = _measure(top)
    audit_share = top.number("audit_share")
    if not 0 <= audit_share <= 1:
        top.wrong("audit_share", f"expected a share between 0 and 1, found {audit_share}")
    publish = top.section("publish")
    allow_partial = publish.flag("allow_partial")
    publish.done()
    thresholds = checks.load(top.section("checks"))
    subset = _subset(top)
    baseline = top.text("baseline", "")
    top.done()
    return RunSettings(
        shard_minutes,
        seed,
        measure,
        audit_share,
        allow_partial,
        thresholds,
        subset,
        baseline,
        {key: value for key, value in overrides.items() if key != "baseline"},
    )


def _merged(written: Any, overrides: Mapping[str, Any]) -> Any:
    """The file's mapping with --config on top; mappings are merged key by key."""
    if not isinstance(written, dict):
        return written
    merged = YamlMapping(written)
    merged.lines = dict(getattr(written, "lines", {}))
    for key, value in overrides.items():
        merged.lines[key] = None
        if isinstance(value, Mapping) and isinstance(merged.get(key), dict):
            merged[key] = _merged(merged[key], {name: _scalar(inner) for name, inner in value.items()})
        else:
            merged[key] = value.lower() == "true" if value in ("true", "false") else value
    return merged


def _scalar(value: Any) -> Any:
    """A value inside a mapping on the command line, which Snakemake hands on as text."""
    return yaml.safe_load(value) if isinstance(value, str) else value


def _measure(top: Section) -> MeasureSettings:
    raw = top.raw("measure")
    if raw is not None and not isinstance(raw, dict):
        top.wrong("measure", f"expected a mapping of measurement settings, found {raw!r}")
        raw = {}
    for key, value in (raw or {}).items():
        if isinstance(value, (int, float)) and not 0 <= value <= LARGEST:
            top.wrong("measure", f"{key}: expected a number from 0 to {LARGEST}, found {value}")
    try:
        return MeasureSettings.from_dict(dict(raw or {}))
    except (TypeError, ValueError) as error:
        top.wrong("measure", str(error))
        return MeasureSettings()


def _subset(top: Section) -> Subset | None:
    name = top.text("subset", None)
    ops, models = _words(top, "ops"), _words(top, "models")
    conditions = tuple(_conditions(top, _words(top, "cases")))
    limit = top.integer("limit", None, minimum=1)
    limit_per_op = top.integer("limit_per_op", None, minimum=1)
    smoke = top.flag("smoke", False)
    cuts = [key for key in ("ops", "models", "cases", "limit", "limit_per_op", "smoke") if key in top]
    if name is None:
        if cuts:
            top.wrong(cuts[0], f"cuts a subset: name it with subset=NAME (given: {', '.join(cuts)})")
        return None
    if not SUBSET_NAME.match(name):
        top.wrong("subset", f"a name is of letters, digits, '.', '_' and '-', found {name!r}")
    if not cuts:
        top.wrong("subset", "cuts nothing: give ops=, models=, cases=, limit=, limit_per_op= or smoke=true")
    return Subset(name, ops, models, conditions, limit, smoke, limit_per_op)


def _words(top: Section, key: str) -> tuple[str, ...]:
    text = top.text(key, None)
    if text is None:
        return ()
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words:
        top.wrong(key, "expected a comma-separated list, found nothing")
    return words


def _conditions(top: Section, words: tuple[str, ...]) -> list[Condition]:
    conditions = []
    for word in words:
        match = CONDITION.match(word)
        number = match is None or match["sign"] == "=" or re.fullmatch(r"-?\d+", match["value"])
        if not match or not number:
            top.wrong("cases", f"expected conditions such as tp=4,m<=64, found {word!r}")
        else:
            conditions.append(Condition(match["field"], match["sign"], match["value"]))
    return conditions
