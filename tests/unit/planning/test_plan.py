"""What a plan holds, who wants it, what is left out and why, and what cannot be planned."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from opatlas.catalogue.recheck import recheck
from opatlas.errors import UserError
from opatlas.staleness import code

REPOSITORY = Path(__file__).parents[3]
TRTLLM, VLLM, SGLANG = "trtllm/1.3.0rc20/sm90", "vllm/0.24.0/sm90", "sglang/0.5.14/sm90"


def left_out(op):
    return {entry.reason: entry.cases for entry in op.left_out}


def test_one_shape_of_two_models_is_one_case_that_names_both(desk):
    op = desk.op(VLLM, "moe")
    shared = [
        owners
        for case, owners in op.owners.items()
        if (case.hidden, case.inter, case.experts, case.topk) == (2048, 768, 128, 8)
    ]
    assert shared
    assert {"Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-VL-30B-A3B-Instruct"} <= set.union(*map(set, shared))
    assert len(set(op.ids)) == len(op.ids)


def test_a_shape_that_two_models_want_on_different_kernels_is_two_cases(desk):
    op = desk.op("sglang/0.5.14/sm100", "attention_generation")
    by_shape: dict = {}
    for case in op.cases:
        by_shape.setdefault(case._replace(dispatch=""), []).append(case)
    twice = [cases for cases in by_shape.values() if len(cases) == 2]
    assert len(twice) == 41370 - 36096
    first, second = sorted(twice[0])
    assert first.dispatch != second.dispatch
    assert set(op.owners[first]) != set(op.owners[second])


def test_kernels_are_named_by_sm_and_model(desk):
    def kernels(name, op, **fields):
        return {
            case.dispatch
            for case in desk.op(name, op).cases
            if all(getattr(case, field) == value for field, value in fields.items())
        }

    assert kernels(SGLANG, "attention_generation", head_dim=512) == {"triton"}
    assert kernels(SGLANG, "attention_generation", head_dim=128) == {"fa3"}
    assert kernels("sglang/0.5.14/sm120", "attention_context", variant="sinks") == {"triton"}
    assert kernels("sglang/0.5.14/sm120", "moe", dtype="w4a16_mxfp4") == {"marlin"}
    assert kernels("trtllm/1.3.0rc20/sm100", "moe", dtype="nvfp4", experts=256) == {"", "min_latency"}
    assert kernels("trtllm/1.3.0rc20/sm100", "moe", dtype="nvfp4", experts=512) == {""}
    assert kernels(TRTLLM, "attention_context") == {""}


def test_a_case_without_a_kernel_is_an_error(copy):
    changed = copy.change("cases/dispatch.yaml", "  sm: 90\n  kernel: fa3", "  sm: 91\n  kernel: fa3")
    with pytest.raises(
        UserError, match=r"dispatch.yaml: no entry says which kernel sglang runs on sm90 for \d+"
    ):
        changed.plan(SGLANG, ["attention_context"])


def test_a_model_that_is_not_served_loses_its_own_shapes_and_no_shared_one(desk):
    op = desk.op(TRTLLM, "attention_context")
    assert left_out(op)["TensorRT-LLM registers no class for these models"] == 6324
    assert not any(case.head_dim == 192 for case in op.cases)
    shared = [case for case in op.cases if (case.heads, case.kv_heads, case.head_dim) == (32, 8, 128)]
    assert shared
    assert all("XiaomiMiMo/MiMo-7B-Base" not in op.owners[case] for case in shared)


def test_every_difference_between_backends_has_a_reason(desk):
    from opatlas.planning.diff import lacks

    for op, having, other in (
        ("moe", TRTLLM, VLLM),
        ("attention_context", SGLANG, TRTLLM),
        ("attention_context", TRTLLM, SGLANG),
        ("attention_context", TRTLLM, VLLM),
        ("mla_bmm_gen_pre", SGLANG, VLLM),
        ("mla_context", SGLANG, VLLM),
        ("kda", "sglang/0.5.16/sm90", VLLM),
    ):
        plan = desk.plan(other, [op, "gdn"])
        reasons, unexplained = lacks(desk.catalogue, desk.op(having, op), plan)
        assert unexplained == []
        assert reasons
        assert all(reasons.values())


def test_an_unexplained_difference_is_named(desk, copy):
    from opatlas.planning.diff import lacks

    smaller = copy.change("cases/ops/mla_bmm_gen_pre.yaml", "[1, 2, 4,", "[2, 4,")
    _, unexplained = lacks(
        smaller.catalogue, desk.op(TRTLLM, "mla_bmm_gen_pre"), smaller.plan(TRTLLM, ["mla_bmm_gen_pre"])
    )
    assert len(unexplained) == 24
    assert "mla_bmm_gen_pre/dtype=bfloat16/heads=1/tokens=1" in unexplained


def test_two_layers_under_one_key_are_an_error_that_names_both(copy, model_entry):
    layer = {"hidden": 2048, "inter": 768, "topk": 8, "experts": 128, "activation": "gelu"}
    changed = copy.write("cases/models/new.yaml", model_entry("new/Other", moe=[layer]))
    with pytest.raises(UserError) as raised:
        changed.plan(VLLM, ["moe"])
    message = str(raised.value)
    assert "share one key of moe_perf" in message
    assert "activation=gelu" in message
    assert "new/Other" in message
    assert "Qwen/Qwen3-30B-A3B" in message


def test_an_unserved_head_count_is_named_until_its_model_is_added(copy, model_entry, desk):
    from opatlas.planning.diff import compare

    layer = {"heads": 112, "kv_heads": 8, "head_dim": 128, "tp": [1, 2]}
    added = copy.write("cases/models/new.yaml", model_entry("new/Wide", attention=[layer]))
    before, after = desk.plan(VLLM, ["attention_context"]), added.plan(VLLM, ["attention_context"])
    (diff,) = compare(before, after)
    assert diff.removed == diff.changed == ()
    assert {part for case in diff.added for part in case.split("/") if part.startswith("heads=")} == {
        "heads=112",
        "heads=56",
    }
    assert len(diff.added) == len(after.ops[0].rows) - len(before.ops[0].rows) > 0
    assert diff.added_s > 0
    assert all(after.ops[0].owners[case] == ("new/Wide",) for case in after.ops[0].cases if case.heads == 112)


def test_a_moved_kernel_is_a_change(copy, desk):
    from opatlas.planning.diff import compare

    changed = copy.change("cases/dispatch.yaml", "  sm: 90\n  kernel: fa3", "  sm: 90\n  kernel: fa4")
    (diff,) = compare(
        desk.plan(SGLANG, ["attention_generation"]), changed.plan(SGLANG, ["attention_generation"])
    )
    assert (diff.added, diff.removed) == ((), ())
    assert diff.changed
    assert all("dispatch=fa3" in old and "dispatch=fa4" in new for old, new in diff.changed)


def test_skips_hold_no_versions_and_raising_a_pin_lists_them(desk):
    for entry in desk.catalogue.skips:
        assert "version" not in entry.match.where
    lines = recheck(REPOSITORY, desk.catalogue, "trtllm")
    assert len(lines) == sum(
        "trtllm" in (entry.match.backends or ())
        for entry in (*desk.catalogue.skips, *desk.catalogue.dispatch)
    )
    assert any(line.startswith("cases/skips.yaml:") and "skip: " in line for line in lines)
    assert any("dispatch: , min_latency" in line for line in lines)


def test_guarded_limits_are_listed_with_their_place(desk, tmp_path):
    runner = tmp_path / "workflow" / "opatlas" / "backends" / "vllm" / "moe.py"
    runner.parent.mkdir(parents=True)
    runner.write_text("x = 1\n# FIXME(kernel-limit): at most 8 heads, file.cu symbol, verified\n")
    assert recheck(tmp_path, desk.catalogue, "vllm")[-1] == (
        "workflow/opatlas/backends/vllm/moe.py:2: limit: at most 8 heads, file.cu symbol, verified"
    )


def test_every_skip_matches_a_case_somewhere(desk):
    spoken = set()
    for dataset in desk.config.datasets():
        if dataset.platform.name != "sm90-h100":
            try:
                plan = desk.plan(dataset.name)
            except UserError:
                continue
            spoken |= {entry.rule for op in plan.ops for entry in op.left_out}
            assert plan.warnings == ()
    assert {entry.match.label for entry in desk.catalogue.skips} - spoken == set()


def test_a_skip_that_matches_nothing_is_a_warning(copy):
    changed = copy.add(
        "cases/skips.yaml",
        "- backend: vllm\n  op: gdn\n  where: {d_model: 3}\n  why: kills\n  reason: there is no such width\n",
    )
    (warning,) = changed.plan(VLLM, ["gdn"]).warnings
    assert warning.startswith("cases/skips.yaml:")
    assert warning.endswith("matches nothing here: there is no such width")


def test_left_out_and_planned_cases_make_up_all_that_anyone_wants(desk):
    for name in (TRTLLM, VLLM, "sglang/0.5.14/sm100"):
        for op in desk.plan(name).ops:
            members = [case for entry in op.left_out for case in entry.members]
            assert len(members) == sum(entry.cases for entry in op.left_out) == len(set(members))
            assert set(members).isdisjoint(op.cases)


def test_an_op_that_is_left_out_whole_stays_with_its_reason(desk):
    op = desk.op("trtllm/1.3.0rc20/sm80", "gemm")
    assert len(op.rows) > 0
    plan = desk.plan("trtllm/1.3.0rc20/sm80", ["gemm", "mla_context"])
    gone = next(op for op in plan.ops if op.op.name == "mla_context")
    assert gone.cases == []
    assert left_out(gone)["TensorRT-LLM's latent attention fails below Hopper"] == 1540


def test_an_empty_plan_is_an_error(desk, copy):
    with pytest.raises(UserError, match="the plan is empty"):
        desk.plan("trtllm/1.3.0rc20/sm80", ["mla_context"])
    empty = copy.change("cases/ops/quantize.yaml", "k:\n  [32, 64", "k: []\nold:\n  [32, 64")
    with pytest.raises(UserError, match=r"quantize.yaml.*old: is not a known key"):
        empty.plan(VLLM, ["compute_scale"])


def test_an_op_without_cases_and_without_a_reason_is_an_error(copy):
    text = (copy.root / "cases/ops/mhc_module.yaml").read_text()
    changed = copy.write("cases/ops/mhc_module.yaml", text[: text.index("tokens:")] + "tokens: []\n")
    with pytest.raises(UserError, match=r"cases/ops/mhc_module.yaml: mhc_module has no case for trtllm"):
        changed.plan(TRTLLM, ["mhc_module"])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"models": "Qwen/Qwen3-23B"}, "did you mean Qwen/Qwen3-32B"),
        ({"ops": "gem"}, "did you mean gemm"),
        ({"cases": "tp<=four"}, "expected conditions"),
        ({"cases": "dtype<=4"}, "dtype is a text"),
        ({"cases": "headz=4"}, "did you mean heads"),
    ],
)
def test_a_misspelt_subset_is_an_error(overrides, message):
    from opatlas.catalogue import load as catalogue
    from opatlas.config import datasets
    from opatlas.planning.plan import make_plan

    def plan():
        config = datasets.load(REPOSITORY, {"subset": "mine", **overrides})
        make_plan(config, catalogue.load(REPOSITORY), config.dataset(f"{VLLM}@mine"), {})

    with pytest.raises(UserError, match=message):
        plan()


def test_a_subset_by_another_checkpoint_of_the_same_shapes(desk):
    from opatlas.config import datasets
    from opatlas.planning.plan import make_plan

    def ids(model):
        config = datasets.load(REPOSITORY, {"subset": "mine", "ops": "attention_context", "models": model})
        plan = make_plan(config, desk.catalogue, config.dataset(f"{VLLM}@mine"), {})
        return plan.ops[0].ids

    assert ids("Qwen/Qwen3-32B-FP8") == ids("Qwen/Qwen3-32B") != []


def test_ops_of_hardware_that_no_runner_saw_are_unverified(desk, copy):
    assert desk.op("torch/2.13.0/cpu", "gemm").unverified is None
    assert desk.op("torch/2.11.0/sm120", "gemm").unverified
    changed = copy.write(
        "cases/unverified.yaml", "- {backend: vllm, op: gdn, sm: 90, note: the runner never ran there}\n"
    )
    assert changed.op(VLLM, "gdn").unverified == "the runner never ran there"
    assert changed.op(VLLM, "gemm").unverified is None


def test_a_plan_depends_on_nothing_but_its_files():
    """Same bytes under other hash seeds and other devices, without torch."""
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from pathlib import Path\n"
        "from opatlas.catalogue import load\n"
        "from opatlas.config import datasets\n"
        "from opatlas.planning.plan import make_plan\n"
        "config, cases = datasets.load(Path('.')), load.load(Path('.'))\n"
        f"print(make_plan(config, cases, config.dataset('{SGLANG}'), {{}}).case_plan_hash)\n"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=REPOSITORY,
            env={"PYTHONPATH": "workflow", "PYTHONHASHSEED": seed, "CUDA_VISIBLE_DEVICES": devices},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed, devices in (("0", ""), ("1", "0"), ("4711", "0,1"))
    }
    assert len(hashes) == 1


def test_the_order_of_files_and_entries_is_no_matter(desk, copy):
    models = copy.root / "cases" / "models"
    for number, path in enumerate(sorted(models.glob("*.yaml"), reverse=True)):
        path.rename(models / f"{number:02}_{path.name}")
    renamed = copy.plan(VLLM, ["moe", "attention_context"])
    assert renamed.case_plan_hash == desk.plan(VLLM, ["attention_context", "moe"]).case_plan_hash


def test_another_generator_of_expert_loads_makes_moe_stale_alone():
    assert "opatlas.ops.moe.inputs" in code.worker_modules("torch", "moe")
    assert "opatlas.ops.moe.inputs" not in code.worker_modules("torch", "gemm")


def test_a_group_names_a_model_where_one_wants_the_case(desk):
    op = desk.op(VLLM, "attention_context")
    groups = {op.group(case) for case in op.cases}
    assert "grid bfloat16" in groups
    assert json.dumps(sorted(groups))
    shared = next(owners for owners in op.owners.values() if "grid" in owners and len(owners) > 1)
    assert shared[-1] == "grid"
