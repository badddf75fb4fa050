"""`sparse_kernels`: single kernels of sparse attention that are measured for calibration."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.config.document import Section

KINDS = ("dsv4", "glm5")


class SparseKernels(NamedTuple):
    """The family whose kernels are measured, unsharded query heads, and the longest sequence in tokens."""

    kind: str
    heads: int
    max_context: int


def read(section: Section) -> SparseKernels:
    return SparseKernels(
        section.choice("kind", KINDS),
        section.integer("heads", minimum=1),
        section.integer("max_context", minimum=1),
    )
