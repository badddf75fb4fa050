"""Runs every check over a dataset's tables; a new check is a file beside this one and a line in CHECKS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opatlas.checks import (
    completeness,
    controls,
    evidence,
    failure_share,
    foreign,
    keys,
    latency,
    roofline,
    runtime,
    schema,
    timing,
    units,
)
from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import BLOCKING, Finding
from opatlas.files import write_atomically
from opatlas.planning.dataset import PlannedDataset

FORMAT = 1
RESULT = "checks.json"

Check = Callable[[Evidence], Iterable[Finding]]

CHECKS: Mapping[str, Check] = {
    "schema": schema.check,
    "completeness": completeness.check,
    "keys": keys.check,
    "latency": latency.check,
    "timing": timing.check,
    "roofline": roofline.check,
    "units": units.check,
    "runtime": runtime.check,
    "failure_share": failure_share.check,
    "controls": controls.check,
    "foreign": foreign.check,
}


@dataclass(frozen=True)
class Report:
    """Every finding, blocking ones first."""

    target: str
    findings: tuple[Finding, ...]

    @property
    def blocking(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == BLOCKING]

    def record(self, fingerprint: str) -> dict[str, Any]:
        """The content of checks.json."""
        return {
            "format": FORMAT,
            "fingerprint": fingerprint,
            "passed": not self.blocking,
            "checks": list(CHECKS),
            "findings": [finding.record() for finding in self.findings],
        }

    def text(self) -> str:
        """A short table for people."""
        advisory = len(self.findings) - len(self.blocking)
        counts = f"{len(self.blocking)} blocking and {advisory} advisory findings"
        head = f"{self.target}: {len(CHECKS)} checks, {counts}"
        return "\n".join([head, *(line for finding in self.findings for line in lines(finding))])


def lines(finding: Finding) -> list[str]:
    """One finding as text."""
    where = f"{finding.table}: " if finding.table else ""
    count = f" ({finding.count})" if finding.count > 1 else ""
    head = f"  {finding.severity:<8}  {finding.check:<13}  {where}{finding.message}{count}"
    examples = [f"{'':27}{example}" for example in finding.examples[:2]]
    return [head, *examples, f"{'':27}-> {finding.advice}"]


def check_dataset(planned: PlannedDataset, folder: Path) -> Report:
    """Checks the tables in a folder and writes checks.json beside them.

    UserError when the tables are those of another plan.
    """
    report = run(evidence.load(planned, folder), str(planned.dataset.target))
    document = json.dumps(report.record(planned.fingerprint), indent=1, sort_keys=True)
    write_atomically(folder / RESULT, document.encode() + b"\n")
    return report


def run(found: Evidence, target: str) -> Report:
    """Every check over the evidence."""
    findings = [finding for check in CHECKS.values() for finding in check(found)]
    findings.sort(key=lambda finding: finding.severity != BLOCKING)
    return Report(target, tuple(findings))
