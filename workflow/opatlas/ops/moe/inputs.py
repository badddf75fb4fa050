"""How tokens spread over experts, the same on every machine and for every backend.

No random number generator of a library is used: what is drawn depends on the case alone, by sha256.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from opatlas.ops.moe.case import Case

WEIGHT_SCALE = 0.02
"""Standard deviation of weights: what transformer weights are initialised with and stay near."""

LIFT = 0.5
"""Router logits of the assigned experts stand out by LIFT * sqrt(hidden).

The product of a normal activation with router weights has standard deviation
WEIGHT_SCALE * sqrt(hidden), 25 times less, so it never changes an assignment.
"""


def local_experts(case: Case) -> int:
    """Experts of one rank; ValueError where ep does not divide them."""
    if case.experts % case.ep:
        raise ValueError(f"{case.experts} experts cannot be split over ep={case.ep}")
    return case.experts // case.ep


def local_inter(case: Case) -> int:
    """Intermediate size of one rank's experts; ValueError where tp does not divide it."""
    if case.inter % case.tp:
        raise ValueError(f"an intermediate size of {case.inter} cannot be split over tp={case.tp}")
    return case.inter // case.tp


def loads(case: Case) -> list[int]:
    """Tokens of each expert; they sum up to tokens * topk and none exceeds `tokens`.

    `balanced` gives each expert as many as any other, to within one. `power_law_A` gives the expert
    at the middle of each of `experts` equal quantiles a share from the power law of density x^-A
    between 1 and `tokens` (so no draw is luckier than another), rounded by largest remainder.
    """
    slots = case.tokens * case.topk
    if case.topk > case.experts:
        raise ValueError(f"{case.topk} experts a token cannot be chosen among {case.experts}")
    if case.distribution == "balanced":
        each, rest = divmod(slots, case.experts)
        return [each + (expert < rest) for expert in range(case.experts)]
    shares = [_power_law(case, (rank + 0.5) / case.experts) for rank in range(case.experts)]
    counts = [0] * case.experts
    open_experts, left = list(range(case.experts)), slots
    # Experts that would exceed the cap take it, and hand the rest on.
    while full := [
        expert
        for expert in open_experts
        if left * shares[expert] >= case.tokens * sum(shares[other] for other in open_experts)
    ]:
        for expert in full:
            counts[expert] = case.tokens
            open_experts.remove(expert)
        left -= case.tokens * len(full)
    total = sum(shares[expert] for expert in open_experts)
    exact = {expert: left * shares[expert] / total for expert in open_experts}
    counts = [int(exact.get(expert, count)) for expert, count in enumerate(counts)]
    # Rounded, so that the last bit of a machine's arithmetic does not decide.
    by_fraction = sorted(exact, key=lambda expert: (-round(exact[expert] % 1, 9), expert))
    for expert in by_fraction[: slots - sum(counts)]:
        counts[expert] += 1
    return counts


def _power_law(case: Case, quantile: float) -> float:
    """The value at this quantile of the law of density x^-A on [1, tokens]."""
    name, _, exponent = case.distribution.rpartition("_")
    if name != "power_law":
        raise ValueError(f"{case.distribution}: expected balanced or power_law_<exponent>")
    power = 1 - float(exponent)
    most = float(max(case.tokens, 2)) ** power
    return float((1 + quantile * (most - 1)) ** (1 / power))


def assignment(case: Case) -> Any:
    """Expert ids, int64 [tokens, topk], as seen from the most loaded rank, which holds the first ids.

    Slots are dealt out expert by expert over the tokens in turn, so no token gets an expert twice.
    """
    counts = np.array(loads(case))
    # Experts are spread over the ranks at random; the rank that the layer waits for comes first.
    spread = counts[_permutation(case, "experts", case.experts)]
    ranks = spread.reshape(case.ep, local_experts(case))
    slowest = int(ranks.sum(axis=1).argmax())
    by_expert = np.roll(ranks, -slowest, axis=0).reshape(-1)
    dealt = np.repeat(np.arange(case.experts), by_expert)
    # Slot s goes to token s % tokens: a column of this array is one token's experts.
    table = dealt.reshape(case.topk, case.tokens).T
    return np.ascontiguousarray(table[_permutation(case, "tokens", case.tokens)])


def _permutation(case: Case, what: str, size: int) -> Any:
    """A permutation that depends on the routing alone, so that every tp and dtype meets the same."""
    routing = (what, case.experts, case.topk, case.distribution)
    seed = hashlib.sha256(repr(routing).encode()).digest()
    keys = [hashlib.sha256(seed + item.to_bytes(8, "little")).digest()[:8] for item in range(size)]
    return np.argsort(np.frombuffer(b"".join(keys), dtype="<u8"), kind="stable")
