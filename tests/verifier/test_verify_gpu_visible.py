"""Seen by the driver, by CUDA and by TensorFlow: the decisions."""

from __future__ import annotations

from typing import Any

import pytest
from tfenv_verify.checks import gpu_visible
from tfenv_verify.checks.gpu_visible import driver, expected, judge, serves
from tfenv_verify.context import Context
from tfenv_verify.gpu import Gpu
from tfenv_verify.protocol import Report

H200 = {
    "name": "NVIDIA H200",
    "compute_capability": "9.0",
    "memory_bytes": 1 << 37,
    "compute_mode": "default",
}


def state(count: int = 2, there: int | None = 2, visible: str | None = None, **more: Any) -> Gpu:
    nvml = {"count": there, "devices": [{"mig": False}] * (there or 0), "trouble": "" if there else "gone"}
    devices = tuple(dict(H200, **more) for _ in range(count))
    return Gpu(library=True, count=count, devices=devices, nvml=nvml, visible=visible)


def seen(count: int = 2, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": "NVIDIA H200",
            "compute_capability": "9.0",
            "where": f"/job:localhost/replica:0/task:0/device:GPU:{number}",
            "value": 32.0,
            **more,
        }
        for number in range(count)
    ]


def said(call: Any, *arguments: Any) -> list[tuple[str, str]]:
    report = Report()
    call(*arguments, report)
    return [(finding["severity"], finding["message"]) for finding in report.findings]


def test_two_gpus_that_compute_pass() -> None:
    assert said(judge, state(), seen(), []) == []
    assert said(driver, state()) == []


def test_fewer_or_more_in_tensorflow_fail() -> None:
    assert said(judge, state(), seen(1), [])[0] == ("error", "the driver sees 2 GPU(s), TensorFlow sees 1")
    assert said(judge, state(1), seen(2), [])[0][0] == "error"
    assert said(judge, state(), [], ["Could not find cuda drivers"])[0][0] == "error"


def test_another_device_or_number_fails_whichever_gpu_it_is() -> None:
    where = seen()
    where[1]["where"] = "/job:localhost/replica:0/task:0/device:GPU:0"
    assert "for GPU 1 was computed on" in said(judge, state(), where, [])[0][1]
    cpu = seen(2, where="/job:localhost/replica:0/task:0/device:CPU:0")
    assert len(said(judge, state(), cpu, [])) == 2
    assert "gives nan" in said(judge, state(), seen(2, value=float("nan")), [])[0][1]


def test_another_compute_capability_fails_and_an_unknown_one_does_not() -> None:
    assert "TensorFlow 8.0, 8.0" in said(judge, state(), seen(2, compute_capability="8.0"), [])[0][1]
    assert said(judge, state(), seen(2, compute_capability=""), []) == []


def test_gpus_that_cuda_leaves_out_are_said_with_the_reason() -> None:
    assert said(driver, state(1, 2)) == [("warning", "the driver has 2 GPUs in this container, CUDA sees 1")]
    assert said(driver, state(1, 2, visible="0")) == [
        ("info", "CUDA_VISIBLE_DEVICES=0 shows 1 of the driver's 2 GPUs to CUDA")
    ]
    assert said(driver, state(1, None))[0][0] == "info"


def test_mig_explains_another_number() -> None:
    mig = Gpu(count=1, devices=(dict(H200),), nvml={"count": 2, "devices": [{"mig": True}] * 2})
    assert said(driver, mig) == [("info", "MIG mode is on: CUDA uses the first MIG instance only")]


@pytest.mark.parametrize(("mode", "severity"), [("prohibited", "error"), ("exclusive process", "info")])
def test_compute_modes(mode: str, severity: str) -> None:
    assert said(driver, state(1, 1, compute_mode=mode))[0][0] == severity


def test_another_number_than_expected_fails() -> None:
    assert said(expected, state(), 2) == said(expected, state(), None) == []
    assert said(expected, state(), 1) == [("error", "1 GPU(s) are expected, 2 are seen")]
    assert said(expected, Gpu(), 2) == [("error", "2 GPU(s) are expected, 0 are seen")]


def test_started_only_to_say_what_was_expected_it_imports_nothing() -> None:
    report = Report()
    gpu_visible.check(Context(gpu=Gpu(visible="0"), expect_gpus=1), report)
    assert report.findings[0]["remedy"] == "look at CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    ("have", "need", "severities"),
    [
        ("12.8", "12.2", []),
        ("13.0", "12.9", []),
        ("12.2", "12.2.2", []),
        ("12.2", "12.9", ["info"]),
        ("11.4", "12.2", ["error"]),
        ("10.2", "11.0", ["error"]),
        ("", "12.2", []),
        ("12.2", "", []),
    ],
)
def test_a_driver_of_an_older_major_cuda_is_too_old(have: str, need: str, severities: list[str]) -> None:
    found = said(serves, Gpu(count=1, cuda=have), need)
    assert [severity for severity, _ in found] == severities
    assert not found or (have in found[0][1] and need in found[0][1])
