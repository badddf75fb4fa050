"""What a worker proves before its first case: the right image, framework version, device and code."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LABELS = Path("/.singularity.d/labels.json")
IN_CONTAINER = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
DIGEST_VARIABLE = "OPATLAS_IMAGE_DIGEST"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Refused(Exception):
    """This worker must not measure; the message is one line."""


def image(runtime: Mapping[str, Any], environment: Mapping[str, str], labels: Path = LABELS) -> str | None:
    """The digest of the image this process runs in; None on the host. Refused where it isn't the ticket's.

    The digest is that of the label Apptainer writes when it pulls by digest, or, for an image that carries no
    such label, the one that the job was started with.
    """
    if runtime.get("kind") != "image":
        return None
    wanted = runtime["digest"]
    if not any(environment.get(name) for name in IN_CONTAINER):
        raise Refused(
            f"this job belongs in image {runtime['image']}, but it runs outside of any container: "
            "run snakemake with --software-deployment-method apptainer"
        )
    found = _labelled_digest(labels) or environment.get(DIGEST_VARIABLE)
    if found is None:
        raise Refused(f"cannot tell which image this is: no digest in {labels} nor in {DIGEST_VARIABLE}")
    if found != wanted:
        raise Refused(f"this job belongs in image {wanted}, but it runs in {found}")
    return found


def _labelled_digest(labels: Path) -> str | None:
    try:
        found = DIGEST.search(labels.read_text())
    except OSError:
        return None
    return found[0] if found else None


def version(expected: str, versions: Mapping[str, str]) -> None:
    """Refused unless the imported framework's public version is the pinned one."""
    found = versions["framework"]
    if _public(found) != _public(expected):
        raise Refused(f"the pinned version is {expected}, but the imported framework is {found}")


SPELLINGS = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc", "rev": "post", "r": "post"}
WORD = re.compile(r"[-_.]?(alpha|beta|preview|post|pre|dev|rev|rc|a|b|c|r)[-_.]?(\d*)")


def _public(version: str) -> str:
    """The public part of a PEP 440 version in one spelling."""
    text = version.strip().lower().partition("+")[0].removeprefix("v")
    release = re.match(r"[\d!.]*\d", text)
    numbers = release[0] if release else ""
    rest = WORD.sub(
        lambda match: f".{SPELLINGS.get(match[1], match[1])}{int(match[2] or 0)}", text[len(numbers) :]
    )
    return re.sub(r"(\.0+)+$", "", numbers) + rest


def device(expected: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Refused unless GPU product and SM are the platform's; a null expects nothing."""
    for key, what in (("device", "device"), ("sm", "SM")):
        wanted = expected.get(key)
        if wanted is not None and facts.get(key) != wanted:
            raise Refused(f"the platform's {what} is {wanted}, but this one's is {facts.get(key)}")


def code(known: frozenset[str]) -> None:
    """Refused if a module of this project is imported that the shard's fingerprint doesn't know."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    names = {name for name in sys.modules if name == "opatlas" or name.startswith("opatlas.")}
    if main is not None and main.name.startswith("opatlas."):
        names.add(main.name)
    if unknown := sorted(names - known):
        raise Refused(
            f"module {unknown[0]} is imported, but neither the shard's fingerprint nor the list of harness "
            "modules knows it"
        )
