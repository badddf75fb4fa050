"""A comparison as text, as a document, and as a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opatlas.baseline.compare import Comparison
from opatlas.baseline.findings import findings
from opatlas.baseline.ratios import Record
from opatlas.checks.finding import Finding
from opatlas.checks.report import lines
from opatlas.publishing import html
from opatlas.publishing.html import Markup, element, facts, section, table

SHOWN = 10
NUMBERS = ("rows", "p5", "p25", "p50", "p75", "p95")


def document(comparison: Comparison) -> Record:
    """What is written for machines."""
    return {**comparison.record(), "findings": [finding.record() for finding in findings(comparison)]}


def text(comparison: Comparison) -> str:
    """The answer, what needs a look, and the largest changes."""
    found = list(findings(comparison))
    head = f"{comparison.new} against the baseline {comparison.old}: {comparison.answer}"
    shown = [line for finding in found for line in lines(finding)]
    rows = [
        f"  {entry['ratio']:8.3f}  {_times(entry)}  {_key(entry)}" for entry in comparison.largest[:SHOWN]
    ]
    largest = ["  largest changes (ratio, baseline -> now):", *rows] if rows else []
    return "\n".join([head, *shown, *largest, *(f"  not compared: {note}" for note in comparison.notes)])


def page(comparison: Comparison) -> str:
    """A page that needs no other file."""
    found = list(findings(comparison))
    environment = [[line] for line in comparison.environment]
    parts = [
        element("h1", f"{comparison.new} against a baseline"),
        element("p", comparison.environment[0] if comparison.environment else "", "soft"),
        facts(_facts(comparison)),
        section("What needs a look", _findings(found)),
        section("Surroundings", table(["differs"], environment) if environment else _nothing()),
        section("By op and precision", _groups(comparison.ops, ["op", "dtype"])),
        section("By op, precision and size", _groups(comparison.groups, ["op", "dtype", "size"])),
        section("Largest changes", _largest(comparison.largest)),
        section("Failure groups", *_failures(comparison.failures)),
        section("Coverage", _coverage(comparison.coverage)),
        section(
            "Not compared",
            table(["what"], [[note] for note in comparison.notes]) if comparison.notes else _nothing(),
        ),
    ]
    return html.page(f"{comparison.new} against {comparison.old} - opatlas", [part for part in parts if part])


def _facts(comparison: Comparison) -> list[tuple[str, Any]]:
    changed = sum(entry["rows different"] for entry in comparison.ops)
    return [
        ("baseline", comparison.old),
        ("answer", comparison.answer),
        ("rows compared", f"{sum(entry['rows'] for entry in comparison.ops):,}"),
        ("rows surely different", f"{changed:,}"),
        ("keys gained", f"{sum(entry['gained'] for entry in comparison.coverage):,}"),
        ("keys lost", f"{sum(entry['lost'] for entry in comparison.coverage):,}"),
    ]


def _nothing() -> Markup:
    return element("p", "Nothing.")


def _findings(found: Iterable[Finding]) -> Markup:
    rows = [
        [finding.table, f"{finding.count:,}", finding.message, "; ".join(finding.examples), finding.advice]
        for finding in found
    ]
    return table(["table", "count", "what", "examples", "what to do"], rows, [1]) if rows else _nothing()


def _groups(entries: Iterable[Record], labels: list[str]) -> Markup:
    rows = [
        [
            *(entry[label] for label in labels),
            f"{entry['rows']:,}",
            *(f"{entry[name]:.3f}" for name in NUMBERS[1:]),
            f"{entry['low']:.3f} to {entry['high']:.3f}",
            f"{entry['rows different']:,}",
            entry["answer"],
        ]
        for entry in entries
    ]
    head = [*labels, *NUMBERS, "median lies in", "rows different", "answer"]
    return table(head, rows, range(len(labels), len(head) - 1)) if rows else _nothing()


def _largest(entries: Iterable[Record]) -> Markup:
    rows = [
        [
            element("span", _key(entry), "code"),
            f"{entry['baseline_ms']:.4g}",
            f"{entry['ms']:.4g}",
            f"{entry['ratio']:.3f}",
            entry["answer"],
            " -> ".join(dict.fromkeys(filter(None, (entry["baseline_kernel"], entry["kernel"])))),
        ]
        for entry in entries
    ]
    head = ["row", "baseline, ms", "now, ms", "ratio", "answer", "kernel"]
    return table(head, rows, [1, 2, 3]) if rows else _nothing()


def _failures(failures: Record) -> list[Markup]:
    if not failures["compared"]:
        return [element("p", "Only one side says which cases failed.")]
    rows = [
        [what, entry["op"], entry["group"], entry["class"], f"{entry['cases']:,}"]
        for what in ("new", "gone")
        for entry in failures[what]
    ]
    return [table(["", "op", "group", "class", "cases"], rows, [4]) if rows else _nothing()]


def _coverage(entries: Iterable[Record]) -> Markup:
    rows = [
        [entry["table"], entry["op"], entry["dtype"], *(f"{entry[n]:,}" for n in ("both", "gained", "lost"))]
        for entry in entries
    ]
    return table(["table", "op", "dtype", "both", "gained", "lost"], rows, [3, 4, 5]) if rows else _nothing()


def _key(entry: Record) -> str:
    return f"{entry['op']}: " + ", ".join(f"{name}={value}" for name, value in entry["key"].items())


def _times(entry: Record) -> str:
    return f"{entry['baseline_ms']:.4g} -> {entry['ms']:.4g} ms, {entry['answer']}"
