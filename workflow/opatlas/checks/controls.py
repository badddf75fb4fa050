"""Control cases agree across nodes, across the shards of a GPU, and from a shard's begin to its end.

Every shard times the same few cases of its op first and last. They are never rows; they show a node that
is slower than the others, and a clock that drifts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median, median_low
from typing import Any

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, Finding, some

NAME = "controls"
# A shard is compared with the others of its GPU where it has at least so many.
LEAST_SHARDS = 3

Device = tuple[str, str | None]


@dataclass(frozen=True)
class Control:
    """One timing of a control case; `half` is half its 95 % interval as a share of the latency."""

    op: str
    case: str
    attempt: str
    when: str
    device: Device
    latency: float
    half: float


def check(evidence: Evidence) -> Iterator[Finding]:
    controls = list(timings(evidence.record))
    # How far they may be from the usual ones, beyond their own noise.
    tolerance = evidence.planned.config.settings.checks.controls.tolerance
    shards = _shards(evidence.record)
    yield from _devices(evidence.planned.dataset.name, controls, shards, tolerance)
    yield from _drifting(controls, shards, tolerance)
    yield from _odd_shards(controls, shards, tolerance)


def timings(record: Mapping[str, Any]) -> Iterator[Control]:
    """Each timing once, though a shard that was regrouped hands it on to several."""
    seen = set()
    for shard in record["shards"]:
        for control in shard["controls"]:
            identity = (control["attempt"], control["order"])
            attempt = record["attempts"].get(control["attempt"])
            rows = control.get("rows") or ()
            latency = sum(row["latency"] for row in rows)
            if identity in seen or attempt is None or not latency > 0:
                continue
            seen.add(identity)
            device = (str(attempt["node"]), (attempt["facts"] or {}).get("uuid"))
            half = sum(row["latency_ci"] for row in rows) / latency
            yield Control(
                shard["op"], control["case"], control["attempt"], control["when"], device, latency, half
            )


def _shards(record: Mapping[str, Any]) -> dict[str, list[str]]:
    """Attempt -> the shards that hold its rows."""
    found: dict[str, list[str]] = defaultdict(list)
    for shard in record["shards"]:
        for attempt in shard["attempts"]:
            found[attempt].append(f"{shard['op']}/{Path(shard['path']).stem}")
    return found


def _devices(
    dataset: str, controls: list[Control], shards: Mapping[str, list[str]], tolerance: float
) -> Iterator[Finding]:
    """Nodes, or single GPUs of them, whose control cases take longer or less than is usual."""
    off = _off(controls, lambda control: control.device, tolerance)
    nodes: dict[str, set[Device]] = defaultdict(set)
    for control in controls:
        nodes[control.device[0]].add(control.device)
    for node, devices in sorted(nodes.items()):
        wrong = sorted(devices & off.keys(), key=str)
        if not wrong:
            continue
        if set(wrong) == devices:
            ratio = median(off[device] for device in wrong)
            yield _slow(dataset, "node", node, ratio, _held(wrong, controls, shards))
            continue
        for device in wrong:
            yield _slow(dataset, "gpu", str(device[1]), off[device], _held([device], controls, shards))


def _held(devices: list[Device], controls: list[Control], shards: Mapping[str, list[str]]) -> list[str]:
    """The shards with rows of these devices."""
    attempts = {control.attempt for control in controls if control.device in devices}
    return sorted({shard for attempt in attempts for shard in shards.get(attempt, ())})


def _slow(dataset: str, kind: str, name: str, ratio: float, held: list[str]) -> Finding:
    message = f"the control cases of {kind} {name} are {_percent(ratio)} than those of others"
    advice = f"look at its clocks and power, then: python -m opatlas retry {dataset} --{kind} {name}"
    selector = f"{'node' if kind == 'node' else 'gpu_uuid'}={name}"
    return Finding(NAME, ADVISORY, "", message, advice, selector, len(held), some(held))


def _drifting(
    controls: list[Control], shards: Mapping[str, list[str]], tolerance: float
) -> Iterator[Finding]:
    """Shards whose last control cases take another time than their first."""
    pairs: dict[str, list[tuple[Control, Control]]] = defaultdict(list)
    firsts = {(c.attempt, c.case): c for c in controls if c.when == "first"}
    for last in (control for control in controls if control.when == "last"):
        if first := firsts.get((last.attempt, last.case)):
            pairs[last.attempt].append((first, last))
    drifts = {}
    for attempt, both in pairs.items():
        ratio = median(last.latency / first.latency for first, last in both)
        unsure = median(last.half + first.half for first, last in both)
        if abs(ratio - 1) - unsure > tolerance:
            drifts[attempt] = ratio
    if drifts:
        node = {control.attempt: control.device[0] for control in controls}
        worst = sorted(drifts, key=lambda attempt: -abs(drifts[attempt] - 1))
        lines = [
            f"{', '.join(shards.get(attempt, [attempt]))}: {_percent(drifts[attempt])} on {node[attempt]}"
            for attempt in worst
        ]
        message = "control cases take another time at the end of a shard than at its begin"
        advice = (
            "look at clocks and temperature of these nodes; measure the shards again if rows depend on it"
        )
        yield Finding(NAME, ADVISORY, "", message, advice, "shard", len(drifts), some(lines))


def _odd_shards(
    controls: list[Control], shards: Mapping[str, list[str]], tolerance: float
) -> Iterator[Finding]:
    """Shards whose control cases differ from those of the other shards of their GPU."""
    by_device: dict[tuple[Device, str], list[Control]] = defaultdict(list)
    for control in controls:
        by_device[control.device, control.op].append(control)
    lines = []
    for (device, _), own in sorted(by_device.items(), key=str):
        if len({control.attempt for control in own}) < LEAST_SHARDS:
            continue
        for attempt, ratio in sorted(_off(own, lambda control: control.attempt, tolerance).items()):
            lines.append(f"{', '.join(shards.get(attempt, [attempt]))}: {_percent(ratio)} on {device[0]}")
    if lines:
        message = "control cases of shards take another time than those of other shards of the same GPU"
        advice = "something else ran there, or its clocks changed: measure these shards again"
        yield Finding(NAME, ADVISORY, "", message, advice, "shard", len(lines), some(lines))


def _off(controls: list[Control], group: Callable[[Control], Any], tolerance: float) -> dict[Any, float]:
    """Group -> its times over the usual ones, where they are further apart than the tolerance and noise.

    The usual time of a case is the lower median over the groups, so of two the faster one: a device may
    be slower than it should be, hardly faster.
    """
    by_case: dict[tuple[str, str], dict[Any, list[Control]]] = defaultdict(lambda: defaultdict(list))
    for control in controls:
        by_case[control.op, control.case][group(control)].append(control)
    ratios: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    for groups in by_case.values():
        times = {name: median(c.latency for c in own) for name, own in groups.items()}
        noise = {name: median(c.half for c in own) for name, own in groups.items()}
        usual = median_low(times.values())
        if len(groups) > 1:
            for name, time in times.items():
                ratios[name].append((time / usual, noise[name] + median(noise.values())))
    found = {}
    for name, pairs in ratios.items():
        ratio, unsure = (median(values) for values in zip(*pairs, strict=True))
        if abs(ratio - 1) - unsure > tolerance:
            found[name] = ratio
    return found


def _percent(ratio: float) -> str:
    return f"{abs(ratio - 1):.0%} {'slower' if ratio > 1 else 'faster'}"
