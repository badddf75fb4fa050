"""Whether entries of the skip list still hold, by what became of cases that they keep out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opatlas.catalogue.load import Catalogue
from opatlas.catalogue.skips import Skip
from opatlas.harness.failures import CUDA_FATAL, HANG, INVALID_MEASUREMENT, OUT_OF_MEMORY, WORKER_DIED
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import OpPlan
from opatlas.shards import file

STILL, NO_LONGER, CANNOT_SAY = "still true", "no longer true", "cannot say"
ROW = "row"
KILLS = (CUDA_FATAL, HANG, WORKER_DIED)
# Failures that leave open whether the framework would run the case.
OPEN = (INVALID_MEASUREMENT, OUT_OF_MEMORY)


@dataclass(frozen=True)
class Judged:
    """One entry and one op that it keeps cases out of.

    `entry` is its place, file and line; `left_out` how many cases it keeps out; `outcomes` what became of
    the cases tried, 'row' or the class of the failure; `because` says what the verdict rests on.
    """

    entry: str
    op: str
    why: str
    reason: str
    left_out: int
    tried: int
    rows: int
    failures: Mapping[str, int]
    verdict: str
    because: str
    outcomes: Mapping[str, str]


def judge(root: Path, catalogue: Catalogue, sampled: PlannedDataset) -> list[Judged]:
    """Every entry that leaves cases out of a dataset, op by op; `sampled` are cases it keeps out.

    Damaged where the file of a shard is not what it says.
    """
    skips = {skip.match.label: skip for skip in catalogue.skips}
    return [judged for op in sampled.plan.ops for judged in _judge(root, skips, sampled, op)]


def _judge(root: Path, skips: Mapping[str, Skip], sampled: PlannedDataset, op: OpPlan) -> Iterator[Judged]:
    found: dict[str, str] = {}
    for shard in sampled.shards_of(op.op.name):
        whole = file.read(root / shard.path)
        found |= dict.fromkeys(whole.rows["case_id"].to_pylist(), ROW)
        failures = whole.failures.select(["case_id", "class"]).to_pylist()
        found |= {failure["case_id"]: failure["class"] for failure in failures}
    for entry in op.left_out:
        if entry.rule not in skips:
            continue
        skip = skips[entry.rule]
        outcomes = {
            case_id: found[case_id]
            for case_id, case in zip(op.ids, op.cases, strict=True)
            if op.owners[case] == (entry.rule,)
        }
        counts = Counter(outcomes.values())
        rows = counts.pop(ROW, 0)
        if not op.runner:
            verdict, because = CANNOT_SAY, f"{sampled.dataset.backend} has no runner of {op.op.name}"
        elif not outcomes:
            verdict, because = CANNOT_SAY, "nothing to try: other rules leave out all of its cases too"
        else:
            verdict, because = weigh(skip.why, list(outcomes.values()))
        yield Judged(
            entry.rule,
            op.op.name,
            skip.why,
            skip.reason,
            entry.cases,
            len(outcomes),
            rows,
            dict(sorted(counts.items())),
            verdict,
            because,
            outcomes,
        )


def weigh(why: str, outcomes: Sequence[str]) -> tuple[str, str]:
    """(verdict, what it rests on), by why the entry leaves cases out and what became of some of them."""
    tried, rows = len(outcomes), outcomes.count(ROW)
    refused = sum(outcome not in (ROW, *OPEN) for outcome in outcomes)
    killed = sum(outcome in KILLS for outcome in outcomes)
    if why == "kills":
        if killed:
            return STILL, f"{killed} of {tried} cases hung or killed their worker"
        return NO_LONGER, f"none of {tried} cases hung or killed its worker"
    if why == "fails_whole":
        if rows:
            return NO_LONGER, f"{rows} of {tried} cases gave rows"
        if refused:
            return STILL, f"none of {tried} cases gave a row"
        return CANNOT_SAY, "no case gave a row, and none was refused"
    if why == "unserved":
        return CANNOT_SAY, "single operators do not show whether the backend serves a model"
    return CANNOT_SAY, "that a case runs does not show whether it is what serving runs"
