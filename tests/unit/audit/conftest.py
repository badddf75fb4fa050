from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from opatlas.checks.run import check_dataset
from opatlas.publishing.publish import publish_dataset

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def published(lab: Any, make_attempt: Make, make_failure: Make) -> Any:
    """A lab whose dataset is published: one case of gemm failed, each op ran on a node of its own."""
    lab.settings(allow_partial=True)
    for number, op in enumerate(op.op.name for op in lab.planned.plan.ops if op.runner):
        log = f"results/attempts/{op}.log"
        content = f"attempt of {op}\n".encode()
        (lab.root / log).parent.mkdir(parents=True, exist_ok=True)
        (lab.root / log).write_bytes(content)
        place = {"attempt": f"a-{op}", "node": f"node{number}", "job_id": str(100 + number)}

        def outcomes(rows: list[dict[str, Any]], op: str = op, place: dict[str, Any] = place) -> Any:
            rows = [{**row, **place, "gpu_uuid": f"GPU-{op}"} for row in rows]
            if op != "gemm":
                return rows, []
            return rows[1:], [make_failure(rows[0]["case_id"], message="no kernel", **place)]

        attempt = make_attempt(
            f"a-{op}",
            node=place["node"],
            job_id=place["job_id"],
            facts={"device": "AMD EPYC", "uuid": f"GPU-{op}"},
            log=log,
            log_sha256=hashlib.sha256(content).hexdigest(),
        )
        lab.write(lab.shards(op), outcomes, attempts=[attempt])
    lab.merge()
    check_dataset(lab.planned, lab.folder)
    publish_dataset(lab.planned, lab.folder, lab.root)
    return lab
