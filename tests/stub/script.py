"""How cases behave, as the JSON file named by OPATLAS_STUB says; without it all of them are well behaved.

    {"versions": {"framework": "2.0.0"}, "facts": {"sm": 90}, "seconds": 0.001, "opening": "abort",
     "cases": {"gemm/*/m=4/*": "segfault", "gemm/*/m=5/*": ["out_of_memory", "fine"]}}

The keys of `cases` are ids or patterns of them, the first that fits counts. A list gives one behaviour per
run of the case, the last one for all further runs; `build:NAME` misbehaves in the build instead of the run,
`opening` before the first case; `seconds` is how long each run takes.
Each run of a case adds its id and the worker's pid as a line to the file `<OPATLAS_STUB>.runs`.
"""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any


@cache
def script() -> dict[str, Any]:
    path = os.environ.get("OPATLAS_STUB")
    return json.loads(Path(path).read_text()) if path else {}


def behaviours(case_id: str) -> list[str]:
    for pattern, value in script().get("cases", {}).items():
        if fnmatchcase(case_id, pattern):
            return value if isinstance(value, list) else [value]
    return ["fine"]


def runs(case_id: str) -> int:
    """How often the case ran before."""
    return sum(line.split()[0] == case_id for line in _read().splitlines())


def note_run(case_id: str) -> None:
    if "OPATLAS_STUB" in os.environ:
        with Path(os.environ["OPATLAS_STUB"] + ".runs").open("a") as file:
            file.write(f"{case_id} {os.getpid()}\n")


def _read() -> str:
    try:
        return Path(os.environ["OPATLAS_STUB"] + ".runs").read_text()
    except (KeyError, OSError):
        return ""
