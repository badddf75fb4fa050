"""The kill bench in small: whatever dies whenever, nothing finished is lost and nothing doubled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[3] / "bench/harness/kill.py"


def test_twenty_runs_with_kills_at_random_moments():
    done = subprocess.run(
        [sys.executable, str(BENCH), "--runs", "20", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
