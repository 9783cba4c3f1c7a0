"""cuDNN, mixed precision, determinism, graphs, saved models: the decisions on what was measured."""

from __future__ import annotations

from typing import Any

import pytest
from tfenv_verify.checks import cudnn, determinism, input_pipeline, memory, saved_model, tf_function
from tfenv_verify.checks import mixed_precision as mixed
from tfenv_verify.context import Context
from tfenv_verify.declared import Declared
from tfenv_verify.devices import Devices
from tfenv_verify.protocol import NotRunError, Report

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
NAN, INF = float("nan"), float("inf")


def said(call: Any, *arguments: Any) -> list[tuple[str, str]]:
    report = Report()
    call(*arguments, report)
    assert all(f["remedy"] for f in report.findings if f["severity"] != "info"), report.findings
    return [(finding["severity"], finding["message"]) for finding in report.findings]


@pytest.mark.parametrize(
    ("precision", "off", "right"),
    [
        ("float32", 1e-5, True),
        ("float32", 1e-3, False),
        ("tf32", 1e-3, True),
        ("tf32", 1e-2, False),
        ("float16", 5e-3, True),
        ("float16", 2e-2, False),
        ("float32", NAN, False),
        ("float16", INF, False),
    ],
)
def test_each_precision_has_its_tolerance(precision: str, off: float, right: bool) -> None:
    assert (said(cudnn.judge, "convolution", precision, off, [GPU]) == []) == right


def test_a_convolution_on_the_cpu_fails() -> None:
    assert "not on a GPU" in said(cudnn.judge, "convolution", "tf32", 0.0, [GPU, CPU])[0][1]


def test_both_layouts_are_tried_on_a_gpu_and_one_on_a_cpu() -> None:
    assert len(cudnn.cases(Devices(("/GPU:0",), "GPU"))) == 6
    assert {layout for _, layout in cudnn.cases(Devices(("/CPU:0",), "CPU"))} == {"NHWC"}


def test_a_process_without_cudnn_or_its_lstm_is_said() -> None:
    assert said(cudnn.loaded, Declared(), ["/x/libcublas.so.12"])[0][0] == "error"
    found = said(cudnn.loaded, Declared(), ["/x/libcudnn_ops.so.9", "/x/libcudnn_cnn.so.9"])
    assert found == [("warning", "the LSTM was computed without cuDNN's LSTM")]
    assert said(cudnn.loaded, Declared(), ["/x/libcudnn_adv.so.9"]) == []


def trained(**more: Any) -> dict[str, Any]:
    found = {
        "computes": "<dtype: 'float16'>",
        "compute_dtype": "float16",
        "weights": "<dtype: 'float32'>",
        "losses": [2.0, 1.0],
        "change": 0.1,
    }
    found.update(more)
    return found


def test_a_mixed_step_passes() -> None:
    assert said(mixed.judge, "mixed_float16", "float16", trained()) == []
    both = {"computes": "bfloat16", "compute_dtype": "bfloat16"}
    assert said(mixed.judge, "mixed_bfloat16", "bfloat16", trained(**both)) == []


@pytest.mark.parametrize(
    "more",
    [
        {"computes": "float32"},
        {"computes": "<dtype: 'bfloat16'>"},
        {"compute_dtype": "bfloat16"},
        {"weights": "float16"},
        {"losses": [2.0, NAN]},
        {"losses": [2.0, INF]},
        {"change": 0.0},
        {"change": INF},
        {"change": NAN},
    ],
)
def test_a_mixed_step_that_is_not_mixed_or_not_finite_fails(more: dict[str, Any]) -> None:
    assert said(mixed.judge, "mixed_float16", "float16", trained(**more))[0][0] == "error"


def test_the_loss_stays_near_float32s() -> None:
    assert said(mixed.near, "p", [2.0, 1.0], [2.0, 1.01]) == []
    for other in ([2.0, 1.5], [2.0, NAN], [2.0, INF]):
        assert said(mixed.near, "p", [2.0, 1.0], other)[0][0] == "error"
    assert said(mixed.near, "p", [1.0, 1.0], [1.0, 1.0])[0][0] == "error", "nothing was learned"


def scaled(**more: float) -> dict[str, float]:
    found = {
        "variable_start": 1.0,
        "scale_start": 32768.0,
        "variable_inf": 1.0,
        "scale_inf": 16384.0,
        "variable_finite": 0.5,
        "scale_finite": 16384.0,
    }
    found.update(more)
    return found


def test_an_infinite_step_is_skipped_and_the_next_is_made() -> None:
    assert said(mixed.judge_skip, scaled()) == []
    for more in ({"variable_inf": -INF}, {"variable_inf": NAN}):
        assert "was not skipped" in said(mixed.judge_skip, scaled(**more))[0][1]
    assert "did not halve" in said(mixed.judge_skip, scaled(scale_inf=32768.0))[0][1]
    for value in (1.0, NAN, -INF):
        assert "no finite step" in said(mixed.judge_skip, scaled(variable_finite=value))[0][1]


def speeds(ratio: float) -> dict[str, dict[str, float]]:
    return {
        "float32": {"matrix product": 100.0},
        "float16": {"matrix product": 100.0 * ratio},
        "bfloat16": {"matrix product": 100.0 * ratio},
    }


@pytest.mark.parametrize(
    ("gpu", "ratio", "severities"),
    [
        ((9, 0), 3.0, ["info", "info"]),
        ((9, 0), 0.5, ["warning", "warning"]),
        ((9, 0), 0.98, ["info", "info"]),
        ((7, 5), 0.5, ["warning", "info"]),
        ((6, 1), 0.5, ["info", "info"]),
        ((), 0.5, ["info", "info"]),
    ],
)
def test_the_speed_up_is_judged_by_generation(gpu: Any, ratio: float, severities: list[str]) -> None:
    assert [severity for severity, _ in said(mixed.judge_speed, speeds(ratio), gpu)] == severities


def test_what_is_timed_is_a_chain_of_calls() -> None:
    assert mixed.chain(lambda x, given: x + given, 3)(1, 2) == 7
    assert mixed.chain(lambda x, given: x + given, 0)(1, 2) == 1


def test_runs_that_differ_in_a_bit_fail_where_the_switch_exists() -> None:
    assert said(determinism.judge, [["00", "11"], ["00", "11"]], True) == []
    assert said(determinism.judge, [["00", "11"], ["00", "12"]], True)[0][0] == "error"
    assert said(determinism.judge, [["00", "11"], ["00", "12"]], False)[0][0] == "warning"
    assert said(determinism.judge, [["00", "11"], ["00"]], True)[0][0] == "error"


def test_graphs_are_traced_once_and_repeat() -> None:
    assert said(tf_function.judge, 1, [[1.0], [1.0]]) == []
    assert said(tf_function.judge, 3, [[1.0], [1.0]])[0][0] == "warning"
    assert said(tf_function.judge, 1, [[1.0], [1.1]])[0][0] == "error"
    assert said(tf_function.judge, 1, [[1.0], [NAN]])[0][0] == "error"


def test_what_was_saved_gives_the_same() -> None:
    assert said(saved_model.judge, "a model", [1.0], [1.0], GPU) == []
    assert said(saved_model.judge, "a model", [1.0], [1.1], GPU)[0][0] == "error"
    assert said(saved_model.judge, "a model", [1.0], [1.0], CPU)[0][0] == "error"


def test_a_pipeline_that_starves_the_gpu_is_only_a_warning() -> None:
    assert said(input_pipeline.judge, 2000.0, 1000.0, 950.0, 8)[0][0] == "info"
    assert said(input_pipeline.judge, 500.0, 1000.0, 450.0, 8)[0][0] == "info"
    assert said(input_pipeline.judge, 1000.0, 1000.0, 500.0, 8)[0][0] == "warning"


def grown(before: Any, after: Any) -> dict[str, Any]:
    return {"before": [before], "after": [after], "memory": [100 << 30], "trouble": ""}


def test_memory_grows_as_needed() -> None:
    assert said(memory.judge_growth, grown(0, 1 << 30)) == []
    assert said(memory.judge_growth, grown(0, 95 << 30))[0][0] == "error"
    assert said(memory.judge_growth, grown(90 << 30, 91 << 30)) == [], "others hold it"
    assert said(memory.judge_growth, grown(None, None))[0][0] == "info"
    assert (
        said(memory.judge_growth, {"before": [], "after": [], "memory": [], "trouble": "x"})[0][0] == "info"
    )


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (("MemoryError", "ResourceExhaustedError", "ok"), "cannot be had"),
        (("ok", "ok", "ok"), "is not obeyed"),
        (("ok", "InternalError", "ok"), "raises InternalError"),
        (("ok", "ResourceExhaustedError", "InternalError"), "cannot compute any more"),
        (("ok", "ResourceExhaustedError", "wrong"), "cannot compute any more"),
    ],
)
def test_a_limit_is_obeyed_and_survived(found: tuple[str, ...], message: str) -> None:
    right = dict(zip(("half", "thrice", "little"), ("ok", "ResourceExhaustedError", "ok"), strict=True))
    assert said(memory.judge_limit, right) == []
    wrong = dict(zip(right, found, strict=True))
    assert message in said(memory.judge_limit, wrong)[0][1]


def test_a_part_that_breaks_off_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        memory, "run_part", lambda *_: {"failed": "was killed by SIGABRT", "tail": "last words"}
    )
    report = Report()
    memory.check(Context(), report)
    assert [finding["evidence"] for finding in report.findings] == ["last words"] * 2
    assert report.status == "fail"


def test_a_cpu_that_stands_in_has_no_memory_to_limit() -> None:
    with pytest.raises(NotRunError, match="no memory of its own"):
        memory.check(Context(on_cpu=2), Report())
