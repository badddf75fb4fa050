"""Writes the tickets that supervisors work from: one for each shard that lacks outcomes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from opatlas.files import write_atomically
from opatlas.harness.ticket import FORMAT, Key
from opatlas.ops.spec import load_op
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import OpPlan
from opatlas.planning.shards import Shard
from opatlas.shards.state import ShardState
from opatlas.staleness import code

CONTROLS = 3


def write_tickets(root: Path, planned: PlannedDataset, needed: Iterable[ShardState]) -> int:
    """Writes the ticket of each state; returns how many."""
    ops = {op.op.name: op for op in planned.plan.ops}
    written = 0
    for state in needed:
        op = ops[state.shard.op]
        content = json.dumps(ticket(planned, op, state.shard, state.missing), separators=(",", ":"))
        write_atomically(root / state.ticket, content.encode() + b"\n")
        written += 1
    return written


def ticket(planned: PlannedDataset, op: OpPlan, shard: Shard, missing: Sequence[Key]) -> dict[str, Any]:
    """What a supervisor is asked to measure; harness/ticket.py reads it."""
    dataset, settings = planned.dataset, planned.config.settings
    costs = dict(zip(shard.ids, shard.costs_s, strict=True))
    by_id = dict(zip(op.ids, op.cases, strict=True))
    cases = [
        {
            "id": key.case,
            "build": build_name(op, by_id[key.case]),
            "cost_s": round(costs[key.case], 4),
            "group": op.group(by_id[key.case]),
            "generation": key.generation,
        }
        for key in missing
    ]
    return {
        "format": FORMAT,
        "dataset": dataset.name,
        "backend": dataset.backend,
        "version": dataset.version,
        "op": shard.op,
        "shard": shard.key,
        "fingerprint": shard.fingerprint,
        "context": shard.context.fingerprint,
        "cases": shuffled(cases, settings.seed),
        "control": [] if dataset.skipped else controls(op),
        "runtime": {"kind": "image", "image": op.runtime.image, "digest": op.runtime.digest}
        if op.runtime.image
        else {"kind": "host"},
        "expect": {"version": dataset.version, "sm": dataset.platform.sm, "device": dataset.platform.gpu},
        "platform": {
            "name": dataset.platform.name,
            "sm": dataset.platform.sm,
            "system": dataset.platform.system,
        },
        "measure": shard.context.parts["measure"],
        "run": {},
        "code": dict(shard.context.code),
        "harness_modules": sorted(code.HARNESS),
    }


def build_name(op: OpPlan, case: Any) -> str:
    return "/".join(f"{field}={getattr(case, field)}" for field in op.op.build)


def shuffled(cases: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Builds in a random order and each build's cases too, the same for the same seed and cases.

    So a drift of the device does not become a trend along an axis, and a build is still made once.
    """
    draw = random.Random(seed)
    builds: dict[str, list[dict[str, Any]]] = {}
    for case in sorted(cases, key=lambda case: str(case["id"])):
        builds.setdefault(case["build"], []).append(case)
    order = list(builds.values())
    draw.shuffle(order)
    for build in order:
        draw.shuffle(build)
    return [case for build in order for case in build]


def controls(op: OpPlan) -> list[str]:
    """The cases that every shard of an op times first and last: a light, a middling and a heavy one."""
    work = load_op(op.op.name).work(op.columns)
    amount = work.flops + work.moved_bytes + work.activation_bytes
    ranked = sorted(zip(amount.tolist(), op.ids, strict=True))
    at = {round((len(ranked) - 1) * share) for share in (0.1, 0.5, 0.9)}
    return [ranked[index][1] for index in sorted(at)][:CONTROLS]
