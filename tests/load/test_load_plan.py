from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tfenv_load import bench, measure, plan
from tfenv_load.bench import Bench, _visible, judge
from tfenv_load.facts import cpu_model
from tfenv_load.lines import read
from tfenv_load.plan import Config, batch_for, hung_before, limit_for, multiples, reductions, singles
from tfenv_verify.runner import Ended

GIB = 1 << 30


def row(**more: Any) -> dict[str, Any]:
    base = {"status": "ok", "throughput": 100.0, "seconds": 20.0, "reduction": "", "gpus": 1, "batch": 256}
    return {"model": "resnet50", "precision": "tf32", "xla": False, **base, **more}


def test_all_precisions_are_planned_with_and_without_xla():
    found = singles(["resnet50", "transformer"], quick=False)
    assert len(found) == len(set(found)) == 16
    assert {config.gpus for config in found} == {1}


def test_quickly_the_usual_choices_are_planned():
    found = [(c.model, c.precision, c.xla) for c in singles(["resnet50", "transformer"], quick=True)]
    assert ("resnet50", "tf32", False) in found and ("resnet50", "mixed_float16", True) in found
    assert ("resnet50", "float32", False) not in found and len(found) == 7


def test_the_batch_is_what_the_memory_holds():
    assert batch_for("resnet50", 140 * GIB) == 256
    assert batch_for("resnet50", 16 * GIB) == 64
    assert batch_for("resnet50", 0) == 32


def test_every_way_to_sum_is_tried_with_the_fastest_of_one_gpu():
    rows = [
        row(),
        row(precision="mixed_float16", xla=True, throughput=300.0),
        row(status="hung", throughput=9e9),
    ]
    found = reductions(rows, "resnet50", 2)
    assert [c.reduction for c in found] == ["hierarchical_copy", "nccl", "reduction_to_one_device"]
    assert {(c.precision, c.xla, c.gpus, c.batch) for c in found} == {("mixed_float16", True, 2, 256)}
    assert reductions(rows, "resnet50", 1) == []
    assert reductions(rows, "transformer", 2) == []


def test_several_gpus_are_measured_with_the_best_way_to_sum_and_nothing_twice():
    rows = [row(), row(gpus=8, reduction="nccl", throughput=700.0)]
    found = multiples(rows, "resnet50", 8, quick=True)
    assert {c.reduction for c in found} == {"nccl"}
    assert [c.gpus for c in found if c.precision == "tf32"] == [2, 4]
    assert all(plan.from_json(r) not in found for r in rows)
    assert len(found) == len(set(found))
    assert multiples([row()], "resnet50", 8, quick=True) == []


def test_a_hang_is_called_so_after_twice_what_the_same_work_took():
    two = Config("resnet50", "tf32", False, gpus=2, reduction="nccl")
    assert limit_for(two, [row(seconds=30.0), row(seconds=90.0, precision="float32")], 240) == 60
    assert limit_for(two, [row(seconds=5.0)], 240) == 40
    assert limit_for(two, [row(seconds=300.0)], 240) == 240
    assert limit_for(two, [], 240) == 240
    assert limit_for(Config("resnet50", "tf32", False), [row(seconds=5.0)], 240) == 240


def test_another_reduction_on_as_many_gpus_tells_more_closely_how_long_it_may_take():
    nccl = Config("resnet50", "tf32", False, gpus=2, reduction="nccl")
    copied = row(seconds=60.0, gpus=2, reduction="hierarchical_copy")
    assert limit_for(nccl, [row(seconds=50.0), copied], 240) == 90
    assert limit_for(nccl, [row(seconds=50.0), {**copied, "seconds": 200.0}], 240) == 300
    assert limit_for(nccl, [row(seconds=50.0), {**copied, "status": "hung"}], 240) == 100
    assert limit_for(nccl, [row(seconds=50.0), {**copied, "gpus": 4}], 240) == 120


def test_a_reduction_that_hung_is_known_for_the_next_model():
    nccl = Config("transformer", "tf32", False, gpus=2, reduction="nccl")
    hung = row(status="hung", gpus=2, reduction="nccl")
    assert hung_before(nccl, [row(), hung]) == "resnet50"
    assert hung_before(nccl, [row(), {**hung, "status": "failed"}, {**hung, "gpus": 4}]) == ""
    assert hung_before(nccl, [{**hung, "reduction": "hierarchical_copy"}]) == ""
    assert hung_before(Config("transformer", "tf32", False), [row(status="hung")]) == ""


def ended(
    result: dict[str, Any] | None = None, code: int = 0, *, late: bool = False, tail: str = ""
) -> Ended:
    data = (json.dumps(result) + "\n").encode() if result is not None else b""
    return Ended(code, late, 12.34, data, tail)


def test_figures_become_a_row():
    assert judge(ended({"status": "ok", "throughput": 5.0}), 60) == {
        "status": "ok",
        "throughput": 5.0,
        "seconds": 12.3,
    }


def test_a_hang_becomes_a_row_that_says_where():
    tail = "phase: making the variables and the data\nnoise\nphase: the first step\nNCCL INFO"
    found = judge(ended(code=-9, late=True, tail=tail), 60)
    assert found["status"] == "hung"
    assert found["why"] == "hung: had not finished after 60 s, in the first step"
    assert judge(ended(code=-9, late=True), 60)["why"].endswith("before it used a GPU")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ("ResourceExhaustedError: OOM when allocating", "out of GPU memory"),
        ("InvalidArgumentError: No OpKernel was registered to support Op 'NcclAllReduce'", "has no NCCL"),
        ("No OpKernel was registered to support Op 'FusedBatchNormV3'", "no kernel of this precision"),
        ("unhandled cuda error: too many resources requested for launch", "NCCL cannot run"),
        ("RuntimeError: something else", "ended with code 1 in the first step"),
    ],
)
def test_a_failure_becomes_a_row_that_says_why(error, why):
    found = judge(ended({"error": error}, 1, tail="phase: the first step"), 60)
    assert found["status"] == "failed" and why in found["why"] and found["error"] == error


def test_a_loss_that_is_no_number_fails():
    found = judge(ended({"status": "failed", "why": "the loss went from 1.0 to nan"}), 60)
    assert (found["status"], found["why"]) == ("failed", "the loss went from 1.0 to nan")


def test_a_crash_without_a_result_fails():
    assert judge(ended(code=-11), 60)["why"] == "ended with SIGSEGV before it used a GPU"


def options(**more: Any) -> Any:
    base = {
        "models": ["resnet50"],
        "quick": True,
        "allow_cpu": False,
        "seconds": 1000.0,
        "limit": 90.0,
        "batch": 0,
    }
    return SimpleNamespace(**{**base, **more})


def run(child: Any, gpus: int = 2, **more: Any) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    made = Bench(events.append, child, options(**more), gpus, 140 * GIB)
    made.run()
    assert made.rows == events
    return events


def test_the_bench_goes_on_after_a_hang_and_uses_what_works():
    def child(config: Config, limit: float, env: dict[str, str]) -> Ended:
        if config.reduction == "nccl":
            return ended(code=-9, late=True, tail="phase: the first step")
        speed = 100.0 * config.gpus * (3 if config.xla else 1) + (config.precision == "mixed_float16")
        return ended({"status": "ok", "throughput": speed, "unit": "images/s"})

    rows = run(child)
    by_reduction = {r["reduction"]: r["status"] for r in rows if r["gpus"] == 2}
    assert by_reduction == {"hierarchical_copy": "ok", "nccl": "hung", "reduction_to_one_device": "ok"}
    wide = [r for r in rows if r["gpus"] == 2 and r["precision"] == "tf32"]
    assert [r["reduction"] for r in wide] == ["hierarchical_copy"]
    keys = [tuple(r[k] for k in ("precision", "xla", "gpus", "reduction")) for r in rows]
    assert len(keys) == len(set(keys)) and {r["batch"] for r in rows} == {256}


def test_a_reduction_that_hung_is_not_waited_for_with_each_model():
    asked = []

    def child(config: Config, limit: float, env: dict[str, str]) -> Ended:
        asked.append((config.model, config.reduction))
        if config.reduction == "nccl":
            return ended(code=-9, late=True, tail="phase: the first step")
        return ended({"status": "ok", "throughput": 100.0 * config.gpus, "unit": "images/s"})

    rows = run(child, models=["resnet50", "transformer"])
    assert [one for one in asked if one[1] == "nccl"] == [("resnet50", "nccl")]
    told = {r["model"]: (r["status"], r["why"]) for r in rows if r["reduction"] == "nccl"}
    assert told["transformer"] == ("left-out", "nccl hung with resnet50")
    assert ("transformer", "hierarchical_copy") in asked


def test_quickly_each_gpu_measures_its_own_configurations():
    seen = []

    def child(config: Config, limit: float, env: dict[str, str]) -> Ended:
        seen.append((config.gpus, env.get("CUDA_VISIBLE_DEVICES")))
        return ended({"status": "ok", "throughput": 1.0, "unit": "images/s"})

    rows = run(child)
    assert {visible for gpus, visible in seen if gpus == 1} <= {"0", "1"}
    assert all(visible is None or "," not in visible for gpus, visible in seen if gpus == 1)
    assert {r["lanes"] for r in rows if r["gpus"] == 1} == {2}
    assert {r["lanes"] for r in rows if r["gpus"] == 2} == {1}


def test_what_has_no_time_left_is_left_out_and_said():
    rows = run(lambda config, limit, env: pytest.fail("it was run"), seconds=0.0)
    assert {r["status"] for r in rows} == {"left-out"} and rows[0]["why"] == "the time was up"


def test_with_one_gpu_nothing_is_summed():
    rows = run(lambda config, limit, env: ended({"status": "ok", "throughput": 1.0}), gpus=1)
    assert {r["gpus"] for r in rows} == {1}


def test_visible_gpus_are_those_that_cuda_would_take():
    assert _visible(None, 2) == ["0", "1"]
    assert _visible("1", 2) == ["1"]
    assert _visible("0,5,1", 2) == ["0"]
    assert _visible("", 2) == _visible("-1", 2) == []
    assert _visible("GPU-abc, 1", 2) == ["GPU-abc", "1"]


def test_without_a_gpu_the_bench_says_so(monkeypatch):
    monkeypatch.setattr(bench, "look", lambda allow_cpu: (0, 0, ""))
    events: list[dict[str, Any]] = []
    assert bench.run(events.append, options(gpus=0, repeats=3)) == 3
    assert [e["event"] for e in events] == ["start", "end"] and events[-1]["why"] == "no GPU"


def test_medians_and_lines():
    assert measure.median([1.0, 2.0, 9.0]) == 2.0 and measure.median([1.0, 2.0]) == 1.5
    assert read(b'{"a": 1}\nnoise\n[1]\n{"b"') == [{"a": 1}]
    assert cpu_model("processor: 0\nmodel name\t: A CPU\nmodel name\t: A CPU\n") == "A CPU"
    assert cpu_model("") == ""
