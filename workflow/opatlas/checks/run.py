"""Runs every check over a dataset's tables; a new check is a file beside this one and a line in CHECKS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from opatlas.checks import (
    ceilings,
    completeness,
    controls,
    differences,
    dtypes,
    evidence,
    failure_share,
    foreign,
    keys,
    labels,
    monotone,
    origin,
    plateau,
    power,
    ragged,
    roofline,
    runtime,
    schema,
    timing,
    units,
    values,
)
from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding
from opatlas.checks.report import RESULT, Report, write
from opatlas.planning.dataset import PlannedDataset


@dataclass(frozen=True)
class Check:
    """`find` gives the findings, of these severities; `keys` are its thresholds in config/config.yaml."""

    find: Callable[[Evidence], Iterable[Finding]]
    severities: tuple[str, ...]
    keys: tuple[str, ...] = ()


CHECKS: Mapping[str, Check] = {
    "schema": Check(schema.check, (BLOCKING,)),
    "completeness": Check(completeness.check, (BLOCKING, ADVISORY)),
    "origin": Check(origin.check, (BLOCKING,)),
    "keys": Check(keys.check, (BLOCKING,)),
    "labels": Check(labels.check, (BLOCKING,)),
    "values": Check(values.check, (BLOCKING,)),
    "differences": Check(differences.check, (BLOCKING,)),
    "timing": Check(timing.check, (BLOCKING, ADVISORY)),
    "roofline": Check(roofline.check, (BLOCKING, ADVISORY), ("checks.roofline.tolerance",)),
    "units": Check(units.check, (BLOCKING,), ("checks.units.factor", "checks.units.shards")),
    "monotone": Check(monotone.check, (ADVISORY,), ("checks.monotone.tolerance",)),
    "plateau": Check(
        plateau.check,
        (ADVISORY,),
        (
            "checks.plateau.above_ms",
            "checks.plateau.rows",
            "checks.plateau.share",
            "checks.plateau.work",
        ),
    ),
    "dtypes": Check(
        dtypes.check,
        (ADVISORY,),
        ("checks.dtypes.tolerance", "checks.dtypes.pairs", "checks.dtypes.work_ms"),
    ),
    "power": Check(power.check, (BLOCKING, ADVISORY)),
    "ragged": Check(ragged.check, (ADVISORY,)),
    "runtime": Check(runtime.check, (BLOCKING,)),
    "failure_share": Check(
        failure_share.check,
        (BLOCKING, ADVISORY),
        ("checks.failure_share.warn", "checks.failure_share.stop", "checks.failure_share.group"),
    ),
    "controls": Check(controls.check, (ADVISORY,), ("checks.controls.tolerance",)),
    "ceilings": Check(ceilings.check, (ADVISORY,), ("checks.ceilings.reach", "checks.ceilings.work_ms")),
    "foreign": Check(foreign.check, (ADVISORY,)),
}


def check_dataset(planned: PlannedDataset, folder: Path) -> Report:
    """Checks the tables in a folder and writes checks.json beside them.

    UserError when the tables are those of another plan.
    """
    report = run(evidence.load(planned, folder), str(planned.dataset.target))
    write(report, planned.fingerprint, folder / RESULT)
    return report


def run(found: Evidence, target: str) -> Report:
    """Every check over the evidence."""
    findings = [finding for check in CHECKS.values() for finding in check.find(found)]
    for finding in findings:
        if finding.severity not in CHECKS[finding.check].severities:
            raise ValueError(f"the check {finding.check} says nothing {finding.severity}")
    findings.sort(key=lambda finding: finding.severity != BLOCKING)
    return Report(target, tuple(CHECKS), tuple(findings))
