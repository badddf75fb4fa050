"""What to check again when a backend's pin is raised."""

from __future__ import annotations

import re
from pathlib import Path

from opatlas.catalogue.load import Catalogue

# A limit of the framework that a runner guards, commented where it does.
LIMIT = re.compile(r"#\s*FIXME\(kernel-limit\):?\s*(?P<text>.*)")


def recheck(root: Path, catalogue: Catalogue, backend: str) -> list[str]:
    """Every skip, dispatch and guarded limit of a backend under `root`: its place, and what it says."""
    found = [
        f"{entry.match.label}: skip: {entry.reason}"
        for entry in catalogue.skips
        if entry.match.backends is not None and backend in entry.match.backends
    ]
    found += [
        f"{entry.match.label}: dispatch: {', '.join(entry.kernels)}"
        for entry in catalogue.dispatch
        if entry.match.backends is not None and backend in entry.match.backends
    ]
    for path in sorted((root / "workflow" / "opatlas" / "backends" / backend).glob("**/*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if match := LIMIT.search(line):
                found.append(f"{path.relative_to(root)}:{number}: limit: {match['text']}")
    return found
