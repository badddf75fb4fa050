"""Every choice of ours that may change a latency. The defaults here are the defaults."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opatlas.measuring.statistics import median_ranks


@dataclass(frozen=True)
class Settings:
    """Seconds, unless a name says otherwise. docs/timing.md gives the reason for each default.

    Sampling: samples are taken until the full 95 % confidence interval of the median is at most
    `target_ci` of the median, looked at when there are `min_samples` (6 or more: fewer have no such
    interval), then half as many more each time, until `max_samples` or until the budget (`budget_s` on
    a GPU, `cpu_budget_s` on a CPU) is spent. A set whose interval is wider than `unstable_ci` of its
    median is no measurement.

    Power state (GPU): one burst of work takes at most `burst_s`, if a single call is not longer, and
    aims at `sample_s`; the device works at most `duty` of the time; a sample counts only if the clock
    before it was at least `clock_floor` of the nominal one. A throttled sample set is repeated after
    `pause_s`. `sustained` adds the latency after `sustained_s` of uninterrupted work.

    CPU: `cpu_threads` pinned threads, and samples of at least `cpu_sample_s`.
    """

    target_ci: float = 0.01
    min_samples: int = 6
    max_samples: int = 250
    unstable_ci: float = 1.0
    budget_s: float = 0.5
    sample_s: float = 0.0002
    burst_s: float = 0.0009
    duty: float = 0.3
    clock_floor: float = 0.988
    pause_s: float = 0.25
    sustained: bool = False
    sustained_s: float = 2.0
    power: bool = False
    cpu_budget_s: float = 0.15
    cpu_sample_s: float = 0.0005
    cpu_threads: int = 1

    def __post_init__(self) -> None:
        if median_ranks(self.min_samples) is None:
            raise ValueError(f"min_samples: expected 6 or more, found {self.min_samples}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Settings with these values over the defaults; ValueError names every wrong key and type."""
        kinds: dict[str, Any] = {f.name: type(f.default) for f in dataclasses.fields(cls)}
        wrong = []
        for key, value in values.items():
            kind = kinds.get(key)
            if kind is None:
                wrong.append(f"{key}: there is no such setting; there are {', '.join(kinds)}")
            elif type(value) is not kind and not (kind is float and type(value) is int):
                wrong.append(f"{key}: expected {kind.__name__}, found {value!r}")
        if wrong:
            raise ValueError("; ".join(wrong))
        typed: dict[str, Any] = {key: kinds[key](value) for key, value in values.items()}
        return cls(**typed)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)
