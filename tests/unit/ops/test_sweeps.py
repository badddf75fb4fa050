"""The sweeps that several ops share."""

from __future__ import annotations

from pathlib import Path

import pytest
from opatlas.catalogue import load as catalogue
from opatlas.config.document import Section
from opatlas.errors import Problems, UserError
from opatlas.ops.rectangle import Rectangle, read_context

GRIDS = catalogue.load(Path(__file__).parents[3]).grids
LONG = GRIDS["dsa_context_module"]


@pytest.mark.parametrize(
    ("max_context", "points", "without_single", "first_batch"),
    [(1048576, 563, 490, 133), (202752, 548, 479, None), (163840, 548, 479, 122)],
)
def test_long_context_prefill(max_context, points, without_single, first_batch):
    found = LONG.context.points(max_context)
    assert len(set(found)) == len(found) == points
    assert sum(isl > 1 for _, isl, _ in found) == without_single
    if first_batch:
        assert sum(batch == 1 for batch, _, _ in found) == first_batch
    assert all(prefix + isl <= max_context for _, isl, prefix in found)


def test_long_context_decode():
    assert len(LONG.decode.points(1048576)) == 193
    assert len(LONG.decode.points(163840)) == len(LONG.decode.points(202752)) == 184
    ladder = LONG.ladder.points(1048576)
    assert len(ladder) == 200
    assert max(batch for batch, kv_len in ladder if kv_len >= 65536) == 8


def test_ops_of_one_file_share_what_is_read():
    assert all(GRIDS[name] is LONG for name in ("msa_generation_module", "dsv4_hca_context_module"))


def test_a_rectangle_is_cut_by_tokens():
    grid = Rectangle([1, 2, 4], [8, 16], 32)
    assert grid.points() == [(1, 8), (1, 16), (2, 8), (2, 16), (4, 8)]
    assert grid.points(8) == [(1, 8), (2, 8), (4, 8)]


@pytest.mark.parametrize("tokens_max", [0, -1, "many", True, None])
def test_a_bad_bound_is_named(tokens_max):
    problems = Problems()
    read_context(Section({"batch": [1], "isl": [1], "tokens_max": tokens_max}, "x.yaml", problems))
    with pytest.raises(UserError, match=r"x.yaml: tokens_max: "):
        problems.raise_if_any()
