"""Which revision of this project made something."""

from __future__ import annotations

import subprocess
from functools import cache

from opatlas.staleness.code import FOLDER

# What a dataset is made by; a change elsewhere in the tree does not make a revision another one.
PARTS = ("workflow", "cases", "config")


@cache
def revision() -> str | None:
    """The git commit of the tree, with `+modified` where files differ from it; None outside of git."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return None
    changed = _git("status", "--porcelain", "--", *PARTS)
    return f"{commit}+modified" if changed else commit


def _git(*arguments: str) -> str | None:
    root = FOLDER.parent.parent
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
