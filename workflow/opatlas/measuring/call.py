"""What one case times."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opatlas.measuring.errors import InvalidMeasurement


@dataclass(frozen=True)
class Call:
    """One operation, ready to run any number of times.

    `run(i)` does it once, as call number i, on copy `i % copies` of its weights or KV cache and returns
    its output: a tensor, or a tuple of tensors. `bytes_per_copy` is what one call reads of its copy; 0
    where nothing has to be cold. Activations are those of set `i % sets`, few enough to stay warm: a
    latency is then a mean over places in memory, not that of one place. `inputs` names the
    distribution of the values; only "random" ones are checked for being so. `kernel` is a regular
    expression for the name of the kernel that the runner asked for, "" where it cannot say.
    """

    run: Callable[[int], Any]
    copies: int = 1
    bytes_per_copy: int = 0
    sets: int = 1
    inputs: str = "random"
    kernel: str = ""

    def require_kernel(self, names: Sequence[str]) -> None:
        """InvalidMeasurement("wrong_kernel") unless one of the kernels that ran is the one asked for."""
        if self.kernel and not any(re.search(self.kernel, name) for name in names):
            raise InvalidMeasurement(
                "wrong_kernel", f"no kernel that ran matches {self.kernel!r}: {', '.join(names) or 'none'}"
            )
