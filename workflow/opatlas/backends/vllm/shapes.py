"""What an attention case says about its layer. No framework is needed here."""

from __future__ import annotations

from typing import Any, NamedTuple

CACHE_DTYPES = {"bfloat16": "auto", "fp8": "fp8"}
"""The tables' names of a cache's precision, as vLLM's `--kv-cache-dtype` has them."""

CACHE_ITEMSIZE = {"bfloat16": 2, "fp8": 1}

NARROW_VALUES = 128
"""Width of the values of a layer with the variant `v128`."""

OTHER_WINDOW = 128
"""Window of the sibling of a layer that has none. That it differs is all that counts."""

WIDEST_ALONE = 256
"""Wider heads occur only in models that mix layers."""


class Shape(NamedTuple):
    """The fields that prefill and decode cases share."""

    dtype: str
    kv_dtype: str
    heads: int
    kv_heads: int
    head_dim: int
    window: int
    variant: str

    @classmethod
    def of(cls, case: Any) -> Shape:
        return cls(*(getattr(case, field) for field in cls._fields))

    @property
    def parts(self) -> frozenset[str]:
        return frozenset(filter(None, self.variant.split("+")))

    @property
    def value_dim(self) -> int:
        return NARROW_VALUES if "v128" in self.parts else self.head_dim

    @property
    def widths(self) -> tuple[int, int, int]:
        """Widths of a token's query, key and value."""
        return self.heads * self.head_dim, self.kv_heads * self.head_dim, self.kv_heads * self.value_dim

    @property
    def token_bytes(self) -> int:
        """Bytes of a token's key and value in the cache."""
        return sum(self.widths[1:]) * CACHE_ITEMSIZE[self.kv_dtype]

    @property
    def sibling(self) -> Shape | None:
        """The other kind of layer in models that have this one; None where all layers are of one kind.

        FlashAttention's schedule is made ahead only in models whose layers all have one window
        (vllm/v1/attention/backends/flash_attn.py, _get_sliding_window_configs): else each call makes
        it. Layers with a window, with sinks, with narrow values or with very wide heads occur in models
        that mix them with others; a chunk is no window there.
        """
        if "chunked" in self.parts or not (self.window or self.parts or self.head_dim > WIDEST_ALONE):
            return None
        return self._replace(window=0 if self.window else OTHER_WINDOW)
