"""report.html: what a dataset is, how it was measured and what is wrong with it, on one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from opatlas.checks.evidence import Evidence
from opatlas.publishing import html
from opatlas.publishing.collection_meta import attempts_of, status
from opatlas.publishing.html import Markup, element, facts, join, section, table
from opatlas.tables.merge import by_table

GROUPS = 25
MESSAGE = 200
METHODS = {
    "cuda_graph": "a CUDA graph of several calls over rotating copies of weights and KV cache",
    "blocked_eager": "calls queued behind a blocking kernel, so that launches are hidden",
    "cupti": "the kernels' own times from CUPTI",
    "cpu_perf_counter": "the processor's clock around calls over rotating copies, on pinned cores",
}


def page(found: Evidence, checks: Mapping[str, Any], reasons: Iterable[str]) -> str:
    """The page; `checks` is the content of checks.json, `reasons` say why the dataset is partial."""
    name = found.planned.dataset.name
    parts = [
        element("h1", name),
        element("p", _sentence(found), "soft"),
        *_notice(list(reasons)),
        facts(_facts(found)),
        section("Tables", _tables(found)),
        section("Checks", *_checks(checks)),
        section("Failures", *_failures(found.failures)),
        section("How it was measured", *_measured(found)),
        section("Left out of the plan", *_left_out(found)),
    ]
    return html.page(f"{name} - opatlas", parts)


def _sentence(found: Evidence) -> str:
    dataset = found.planned.dataset
    ops = len([op for op in found.planned.plan.ops if op.runner and len(op.rows)])
    subset = f" This is the subset {dataset.subset.name} of it." if dataset.subset else ""
    return (
        f"Measured latencies of single operators of LLM inference ({ops} kinds), as {dataset.backend} "
        f"{dataset.version} runs them on {dataset.platform.gpu or 'a CPU'}. Each row is the time that one "
        f"call takes up the device in steady serving.{subset}"
    )


def _notice(reasons: list[str]) -> list[Markup]:
    if not reasons:
        return []
    items = element("ul", join(element("li", reason) for reason in reasons))
    head = element("strong", "This dataset is partial: it was published although checks failed.")
    return [element("div", join([head, items]), "notice")]


def _facts(found: Evidence) -> list[tuple[str, Any]]:
    plan, record = found.planned.plan, found.record
    attempts = record["attempts"].values()
    started = sorted(str(attempt["started"])[:10] for attempt in attempts)
    devices = {str(attempt["facts"].get("device")) for attempt in attempts}
    versions = {str(attempt["versions"].get("framework")) for attempt in attempts}
    images = sorted({op.runtime.image for op in plan.ops if op.runner and op.runtime.image})
    period = f"{started[0]} to {started[-1]}" if started else "-"
    return [
        ("rows", f"{sum(own.num_rows for own in found.tables.values()):,}"),
        ("failed cases", f"{found.failures.num_rows:,}"),
        ("planned cases", f"{plan.cases:,}"),
        ("measured", period if len(set(started)) > 1 else period[:10]),
        ("device", ", ".join(sorted(devices))),
        ("exact version", ", ".join(sorted(versions))),
        ("runtime", element("span", ", ".join(images), "code") if images else "the host's environment"),
        ("fingerprint", element("span", found.planned.fingerprint[:16], "code")),
    ]


def _tables(found: Evidence) -> Markup:
    failed = Counter(found.failures["table"].to_pylist())
    rows = []
    for name, ops in by_table(found.planned).items():
        own = found.tables[name]
        cases = sum(len(op.rows) for op in ops)
        counts = [f"{count:,}" for count in (cases, own.num_rows, failed[name])]
        rows.append([element("span", name, "code"), *counts, *_quality(own), status(found.planned, name)])
    for op in found.planned.plan.ops:
        if len(op.rows) and not op.runner:
            what = [element("span", op.op.table.name, "code"), f"{len(op.rows):,}", "0", "0"]
            rows.append([*what, "", "", "", f"{op.op.name}: planned, no runner"])
    head = ["table", "cases", "rows", "failed", "latency, ms", "interval, median", "throttled", "status"]
    return table(head, rows, range(1, 7))


def _quality(own: pa.Table) -> list[str]:
    """Range of the latency, the usual relative confidence interval, and throttled rows."""
    if not own.num_rows or "latency" not in own.column_names:
        return ["", "", ""]
    latency, interval = own["latency"].to_numpy(), own["latency_ci"].to_numpy()
    throttled = int(own["throttled"].to_numpy().sum())
    relative = np.median(interval[latency > 0] / latency[latency > 0]) if (latency > 0).any() else 0.0
    return [f"{latency.min():.3g} to {latency.max():.3g}", f"±{relative:.2%}", f"{throttled:,}"]


def _checks(checks: Mapping[str, Any]) -> list[Markup]:
    names = ", ".join(checks["checks"])
    findings = checks["findings"]
    if not findings:
        return [element("p", f"Nothing was found by {names}.")]
    rows = [
        [
            element("span", finding["severity"], finding["severity"]),
            finding["check"],
            element("span", finding["table"], "code"),
            f"{finding['count']:,}",
            join([finding["message"], *(element("div", text, "code soft") for text in finding["examples"])]),
            finding["advice"],
        ]
        for finding in findings
    ]
    head = ["severity", "check", "table", "count", "what", "what to do"]
    return [element("p", f"Checked: {names}."), table(head, rows, [3])]


def _failures(failures: pa.Table) -> list[Markup]:
    if not failures.num_rows:
        return [element("p", "Every planned case has its row.")]
    records = failures.select(["table", "class", "reason", "group", "exception", "message"]).to_pylist()
    classes = Counter((f["table"], f["class"], f["reason"] or "", f["exception"] or "") for f in records)
    groups = Counter((f["table"], f["group"]) for f in records)
    example = {(f["table"], f["group"]): _first_line(f["message"]) for f in reversed(records)}
    by_class = [[*kind, f"{count:,}"] for kind, count in _most(classes)]
    by_group = [[*group, f"{count:,}", example[group]] for group, count in _most(groups)[:GROUPS]]
    more = len(groups) - GROUPS
    rest = [element("p", f"and {more:,} more groups in failures.parquet", "soft")] if more > 0 else []
    return [
        table(["table", "class", "reason", "exception", "cases"], by_class, [4]),
        element("p", "By model and precision:"),
        table(["table", "group", "cases", "an example"], by_group, [2]),
        *rest,
    ]


def _first_line(message: str) -> str:
    return message.partition("\n")[0][:MESSAGE]


def _most(counts: Counter[Any]) -> list[tuple[Any, int]]:
    """The greatest counts first, equal ones by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _measured(found: Evidence) -> list[Markup]:
    settings = found.planned.config.settings
    methods = Counter(
        str(method) for own in found.tables.values() for method in own["timing_method"].to_pylist()
    )
    timing = [[method, f"{count:,}", METHODS.get(method, "")] for method, count in _most(methods)]
    measure = ", ".join(f"{key} {value}" for key, value in settings.measure.to_dict().items())
    return [
        table(["timing method", "rows", "what it is"], timing, [1]),
        element("p", f"Settings: {measure}. Order of cases by seed {settings.seed}.", "soft"),
        *_repeated(found),
        table(["node", "device", "version", "driver", "attempts"], _nodes(found), [4]),
    ]


def _repeated(found: Evidence) -> list[Markup]:
    """The audit sample: how far a second measurement of a case is from the published one."""
    rows = [
        [op, f"{entry['compared']:,}", *(f"{entry[name]:.2%}" for name in ("p50", "p95", "largest"))]
        for op, entry in found.record["repeatability"].items()
        if entry["compared"]
    ]
    if not rows:
        return []
    return [table(["measured again", "cases", "|ratio - 1| p50", "p95", "largest"], rows, [1, 2, 3, 4])]


def _nodes(found: Evidence) -> list[list[str]]:
    ops = [op for op in found.planned.plan.ops if op.runner]
    places = Counter(
        (
            str(attempt["node"]),
            str(attempt["facts"].get("device")),
            str(attempt["versions"].get("framework")),
            str(attempt["facts"].get("driver") or "-"),
        )
        for attempt in attempts_of(found.record, ops)
    )
    return [[*place, f"{count:,}"] for place, count in sorted(places.items())]


def _left_out(found: Evidence) -> list[Markup]:
    rows = [
        [op.op.name, entry.rule, f"{entry.cases:,}", entry.reason]
        for op in found.planned.plan.ops
        for entry in op.left_out
        if entry.cases
    ]
    elsewhere = found.planned.plan.pinned_elsewhere
    lines = [element("p", f"Pinned at another version: {', '.join(elsewhere)}.")] if elsewhere else []
    if not rows:
        return [element("p", "Nothing."), *lines]
    return [table(["op", "rule", "cases", "reason"], rows, [2]), *lines]
