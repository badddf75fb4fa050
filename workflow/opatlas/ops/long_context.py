"""The sweep of sparse-attention ops: prompts in chunks behind long prefixes, and decode at long caches.

cases/ops/long_context.yaml holds it, since all these ops are asked at the same points.
"""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section


class Context(NamedTuple):
    """Prefill points.

    A step takes at most `new_tokens_max` new tokens and reaches at most `kv_tokens_max` cached ones over
    its batch. Behind a prefix of `long_prefix` or more, a prompt goes on in `chunks` or token by token.
    """

    batch: list[int]
    isl: list[int]
    prefix: list[int]
    new_tokens_max: int
    kv_tokens_max: int
    long_prefix: int
    chunks: list[int]

    def points(self, max_context: int) -> list[tuple[int, int, int]]:
        """(batch, new tokens, prefix) that a model of this context length takes."""
        return [
            (batch, isl, prefix)
            for batch in self.batch
            for isl in self.isl
            for prefix in self.prefix
            if batch * isl <= self.new_tokens_max
            and batch * (prefix + isl) <= self.kv_tokens_max
            and prefix + isl <= max_context
            and (prefix < self.long_prefix or isl == 1 or isl in self.chunks)
        ]


class Decode(NamedTuple):
    """Decode points: a rectangle cut by `tokens_max`, and small batches at lengths beyond it."""

    batch: list[int]
    kv_len: list[int]
    tokens_max: int
    beyond_kv_len: list[int]
    beyond_batch: list[int]

    def points(self, max_context: int) -> list[tuple[int, int]]:
        """(batch, cached tokens) that a model of this context length takes."""
        inner = [
            (batch, kv_len)
            for batch in self.batch
            for kv_len in self.kv_len
            if batch * kv_len <= self.tokens_max and kv_len <= max_context
        ]
        return inner + [
            (batch, kv_len)
            for batch in self.beyond_batch
            for kv_len in self.beyond_kv_len
            if kv_len <= max_context
        ]


class Ladder(NamedTuple):
    """Decode points of compressed attention: the longer the cache, the smaller the largest batch."""

    batch: list[int]
    kv_len: list[int]
    tokens_max: int
    rungs: list[tuple[int, int]]

    def points(self, max_context: int) -> list[tuple[int, int]]:
        """(batch, cached tokens) that a model of this context length takes."""
        return [
            (batch, kv_len)
            for batch in self.batch
            for kv_len in self.kv_len
            if batch * kv_len <= self.tokens_max
            and kv_len <= max_context
            and batch <= min((most for length, most in self.rungs if kv_len >= length), default=batch)
        ]


class LongContext(NamedTuple):
    context: Context
    decode: Decode
    ladder: Ladder


def read_grid(section: Section) -> LongContext:
    context, decode = section.section("context"), section.section("decode")
    ladder = section.section("compressed_decode")
    rungs = []
    for rung in ladder.records("ladder"):
        rungs.append((rung.integer("kv_len_from", minimum=1), rung.integer("batch_max", minimum=1)))
        rung.done()
    grid = LongContext(
        Context(
            sizes(context, "batch"),
            sizes(context, "isl"),
            sizes(context, "prefix", minimum=0),
            context.integer("new_tokens_max", minimum=1),
            context.integer("kv_tokens_max", minimum=1),
            context.integer("long_prefix", minimum=1),
            sizes(context, "chunks"),
        ),
        Decode(
            sizes(decode, "batch"),
            sizes(decode, "kv_len"),
            decode.integer("tokens_max", minimum=1),
            sizes(decode, "beyond_kv_len"),
            sizes(decode, "beyond_batch"),
        ),
        Ladder(
            sizes(ladder, "batch"),
            sizes(ladder, "kv_len"),
            ladder.integer("tokens_max", minimum=1),
            rungs,
        ),
    )
    for part in (context, decode, ladder):
        part.done()
    return grid
