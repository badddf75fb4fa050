"""Says what a framework no longer has of what a backend's runners use. Needs no GPU and imports no framework.

    python -m opatlas.interface.check BACKEND [--sources FOLDER] [--out REPORT.json]

Exit status 1, and a line for each use that does not fit, where something moved.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from opatlas.interface.signatures import signature
from opatlas.interface.sources import Package
from opatlas.interface.uses import Use, declaration, uses_of

BACKENDS = Path(__file__).resolve().parents[1] / "backends"


def misfits(package: Package, uses: list[Use]) -> list[str]:
    """A line for each use that the package does not have, or not so."""
    lines = []
    for use in uses:
        if reason := misfit(package, use):
            symbol = f"{use.module}:{use.path}" if use.path else use.module
            lines.append(f"{use.place}: {symbol} {reason}")
    return list(dict.fromkeys(lines))


def misfit(package: Package, use: Use) -> str | None:
    """Why a use does not fit, None where it does."""
    if package.module(use.module) is None:
        return "is gone: there is no such module"
    found = package.find(use.module, use.path)
    if found is None:
        owner, _, member = use.path.rpartition(".")
        outer = package.find(use.module, owner) if owner else None
        if outer and package.foreign_base(outer):
            return None
        return f"is gone: {owner or use.module} has no {member}"
    if not use.called or found.node is None:
        return None
    takes = signature(package, found, use.bound)
    return takes.misfit(use.positional, use.keywords, use.whole) if takes else None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m opatlas.interface.check", description=__doc__)
    parser.add_argument("backend")
    parser.add_argument("--sources", type=Path, help="the package's folder, if it is not installed")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    folder = BACKENDS / given.backend
    name, declared = declaration(folder)
    package = Package(name, given.sources) if given.sources else Package.installed(name)
    if package is None:
        print(f"opatlas: {name} is not installed here, where the runners of {given.backend} would run")
        return 1
    uses = uses_of(folder, name) + declared
    lines = misfits(package, uses)
    for line in lines:
        print(f"workflow/opatlas/backends/{given.backend}/{line}")
    if lines:
        print(
            f"opatlas: {len(lines)} of {len(uses)} uses of {name} do not fit the sources in {package.folder}"
        )
        return 1
    print(f"{len(uses)} uses of {name} fit the sources in {package.folder}")
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps({"package": name, "uses": len(uses)}) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
