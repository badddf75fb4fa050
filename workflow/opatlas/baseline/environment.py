"""What of the surroundings differs between two datasets: to be read before any ratio."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# What of a device's facts can make another time of one call.
DEVICE_FACTS = ("driver", "power_limit_w", "sm_clock_application_mhz", "timer", "threads", "capability")
SHOWN = 6

Words = dict[str, set[str]]


def facts(provenance: Mapping[str, Any]) -> Words:
    """Name -> values that a dataset states of what it ran in; nothing where it has no provenance."""
    attempts = list((provenance.get("attempts") or {}).values())
    versions = [attempt.get("versions") or {} for attempt in attempts]
    devices = [attempt.get("facts") or {} for attempt in attempts]
    measure = provenance.get("measure") or {}
    images = [{"image": op.get("image")} for op in (provenance.get("ops") or {}).values()]
    return {
        **_gathered(images, ("image",)),
        **_gathered(versions, dict.fromkeys(name for version in versions for name in version)),
        **_gathered(devices, DEVICE_FACTS),
        **_gathered([{f"measure.{name}": value for name, value in measure.items()}]),
    }


def differences(new: Words, old: Words) -> list[str]:
    """A line for each fact that the sides don't share; what a side does not state is no difference."""
    return [
        f"{name}: {_listed(old[name])} -> {_listed(values)}"
        for name, values in new.items()
        if values and old.get(name) and values != old[name]
    ]


def _gathered(mappings: Iterable[Mapping[str, Any]], names: Iterable[str] | None = None) -> Words:
    found = list(mappings)
    names = dict.fromkeys(name for mapping in found for name in mapping) if names is None else names
    return {
        name: {str(mapping[name]) for mapping in found if mapping.get(name) is not None} for name in names
    }


def _listed(values: set[str]) -> str:
    ordered = sorted(values)
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return ", ".join(ordered[:SHOWN]) + more
