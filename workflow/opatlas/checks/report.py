"""What checks found of a dataset: checks.json for machines, lines for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opatlas.checks.finding import BLOCKING, Finding
from opatlas.files import write_atomically

FORMAT = 1
RESULT = "checks.json"


@dataclass(frozen=True)
class Report:
    """The names of the checks that looked, and every finding, blocking ones first."""

    target: str
    checks: tuple[str, ...]
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
            "checks": list(self.checks),
            "findings": [finding.record() for finding in self.findings],
        }

    def text(self) -> str:
        """What was found, for people."""
        advisory = len(self.findings) - len(self.blocking)
        counts = f"{len(self.blocking)} blocking and {advisory} advisory findings"
        head = f"{self.target}: {len(self.checks)} checks, {counts}"
        return "\n".join([head, *(line for finding in self.findings for line in lines(finding))])


def lines(finding: Finding) -> list[str]:
    """One finding as text."""
    where = f"{finding.table}: " if finding.table else ""
    count = f" ({finding.count})" if finding.count > 1 else ""
    head = f"  {finding.severity:<8}  {finding.check:<13}  {where}{finding.message}{count}"
    examples = [f"{'':27}{example}" for example in finding.examples[:2]]
    return [head, *examples, f"{'':27}-> {finding.advice}"]


def write(report: Report, fingerprint: str, path: Path) -> None:
    """Writes a report as checks.json."""
    document = json.dumps(report.record(fingerprint), indent=1, sort_keys=True)
    write_atomically(path, document.encode() + b"\n")


def read(path: Path, target: str) -> Report:
    """The report that a checks.json holds."""
    document = json.loads(path.read_text(encoding="utf-8"))
    findings = (Finding(**{**entry, "examples": tuple(entry["examples"])}) for entry in document["findings"])
    return Report(target, tuple(document["checks"]), tuple(findings))
