"""The decisions of the checks that import TensorFlow, without TensorFlow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tfenv_verify.checks import (
    gpu_kernels,
    gpu_visible,
    pip_check,
    tensorflow,
)
from tfenv_verify.checks._numeric import distance
from tfenv_verify.context import Context
from tfenv_verify.declared import Declared
from tfenv_verify.distributions import Distribution, asked_for
from tfenv_verify.gpu import Gpu
from tfenv_verify.protocol import NotRunError, Report
from tfenv_verify.stderr_tee import stderr_copied

OURS = Declared(
    cell="c",
    tensorflow="2.15.1",
    python="3.11",
    cuda="12.2",
    compiled_cuda="12.2",
    compiled_cudnn="8.9.4",
)
THERE: dict[str, Any] = {
    "python": "3.11.2",
    "with_cuda": True,
    "build_info": {"cuda_version": "12.2", "cudnn_version": "8"},
}


def compared(declared: Declared = OURS, **changes: Any) -> Report:
    report = Report()
    tensorflow.compare(declared, **{**THERE, **changes}, report=report)
    return report


def test_what_is_declared_passes() -> None:
    assert compared().findings == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"python": "3.10.12"}, "3.11 is declared"),
        ({"with_cuda": False}, "built without CUDA"),
        ({"build_info": {"cuda_version": "11.8", "cudnn_version": "8"}}, "compiled for cuda 11.8"),
        ({"build_info": {"cuda_version": "12.2", "cudnn_version": "9"}}, "compiled for cudnn 9"),
        ({"build_info": {"cudnn_version": "8"}}, "does not name cuda: nothing shows"),
        ({"build_info": {"cuda_version": "12.2"}}, "does not name cudnn: nothing shows"),
        ({"build_info": {}}, "does not name cuda: nothing shows"),
    ],
)
def test_what_differs_fails(changes: dict[str, Any], words: str) -> None:
    report = compared(**changes)
    assert report.status == "fail"
    assert words in str(report.findings)


def released(declared: str, imported: str, *installed: str) -> str:
    report = Report()
    mine = [Distribution("tensorflow", version, "/s", "/s/i") for version in installed]
    tensorflow.of_this_release(Declared(cell="c", tensorflow=declared), imported, mine, report)
    return report.status


@pytest.mark.parametrize(
    ("declared", "imported", "installed", "status"),
    [
        ("2.15.1", "2.15.1", ["2.15.1"], "pass"),
        ("2.15.0.post1", "2.15.0", ["2.15.0.post1"], "pass"),
        ("2.22.0rc0", "2.22.0-rc0", ["2.22.0rc0"], "pass"),
        ("", "2.15.1", [], "pass"),
        ("2.15.1", "2.15.0", ["2.15.1"], "fail"),
        ("2.15.1", "2.15.1", ["2.15.0"], "fail"),
        ("2.15.1", "2.15.1", ["2.15.1", "2.15.0"], "fail"),
        ("2.15.1", "2.15.1", [], "fail"),
        ("2.15.0.post1", "2.15.0", ["2.15.0"], "fail"),
        ("2.15.1", "2.15", ["2.15.1"], "fail"),
        ("2.22.0", "2.22.0-rc0", ["2.22.0"], "fail"),
    ],
)
def test_the_distribution_and_the_module_are_of_the_release(
    declared: str, imported: str, installed: list[str], status: str
) -> None:
    assert released(declared, imported, *installed) == status


RC = Declared(cell="c", cuda="12.9", cudnn="9.10", compiled_cuda="12.5.1", compiled_cudnn="9.10.0")
EXTRA = {
    "nvidia-cuda-runtime-cu12": "12.5.82",
    "nvidia-cudnn-cu12": "9.10.2.21",
    "nvidia-nccl-cu12": "2.30.7",
}


def test_a_build_that_names_no_cuda_is_known_by_its_own_extra() -> None:
    info = {"is_cuda_build": True}
    assert compared(RC, build_info=info, extra=EXTRA).status == "pass"
    other = compared(RC, build_info=info, extra={**EXTRA, "nvidia-cuda-runtime-cu12": "12.8.57"})
    assert "compiled for cuda 12.8" in str(other.findings) and other.status == "fail"
    two = {**EXTRA, "nvidia-cuda-runtime-cu13": "13.0.48"}
    assert "nothing shows" in str(compared(RC, build_info=info, extra=two).findings)
    half = {"is_cuda_build": True, "cuda_compute_capabilities": ["sm_80"]}
    assert compared(RC, build_info=half, extra=EXTRA).status == "fail"


def test_the_extra_is_read_from_the_wheels_metadata(tmp_path: Path) -> None:
    lines = [
        "Requires-Dist: numpy>=1.26.0",
        'Requires-Dist: nvidia-cudnn-cu12<10.0,>=9.10.2.21; extra == "and-cuda"',
        "Requires-Dist: nvidia_cublas-cu12 (==12.2.5.6) ; extra == 'and-cuda'",
        'Requires-Dist: other>=1; extra == "gcs-filesystem"',
        "",
        'Requires-Dist: nvidia-later==1; extra == "and-cuda"',
    ]
    (tmp_path / "METADATA").write_text("\n".join(lines))
    dist = Distribution("tensorflow", "2.22.0", str(tmp_path), str(tmp_path))
    assert asked_for(dist, "and-cuda") == {"nvidia-cudnn-cu12": "9.10.2.21", "nvidia-cublas-cu12": "12.2.5.6"}
    assert asked_for(Distribution("x", "1", "", str(tmp_path / "none")), "and-cuda") == {}


@pytest.mark.parametrize(
    ("cuda", "cudnn", "status"),
    [
        ("12.5", "9.3", "pass"),
        ("12.6", "9.5", "pass"),
        ("12.3", "9.3", "fail"),
        ("13.0", "9.3", "fail"),
        ("12.5", "9.2", "fail"),
        ("12.5", "8.9", "fail"),
    ],
)
def test_a_set_older_than_compiled_for_fails(cuda: str, cudnn: str, status: str) -> None:
    built = {"cuda_version": "12.5.1", "cudnn_version": "9"}
    declared = Declared(cell="c", cuda=cuda, cudnn=cudnn, compiled_cuda="12.5.1", compiled_cudnn="9.3.0")
    assert compared(declared, build_info=built).status == status


def test_a_tag_may_name_a_newer_cuda_of_the_same_major_version() -> None:
    declared = Declared(cell="c", cuda="12.9", compiled_cuda="12.5")
    report = compared(declared, build_info={"cuda_version": "12.5"})
    assert [f["severity"] for f in report.findings] == ["info"]
    wrong = Declared(cell="c", cuda="13.0", compiled_cuda="12.5")
    assert compared(wrong, build_info={"cuda_version": "12.5"}).status == "fail"


def test_a_foreign_image_is_compared_with_nothing() -> None:
    report = compared(Declared(), with_cuda=False, build_info={})
    assert [f["severity"] for f in report.findings] == ["info"]


def test_a_foreign_build_that_does_not_name_its_cuda_is_only_said() -> None:
    report = compared(Declared(compiled_cuda="12.2"), build_info={})
    assert [f["severity"] for f in report.findings] == ["info"]


def test_a_gpu_that_only_the_driver_sees_fails_with_tensorflows_words() -> None:
    line, report = "W gpu_device.cc] Cannot dlopen some GPU libraries.", Report()
    gpu_visible.judge(Gpu(count=1), [], [line], report)
    assert report.status == "fail"
    assert report.findings[0]["evidence"] == line


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (Gpu(nodes=True, trouble="no such file"), "NVIDIA_DRIVER_CAPABILITIES"),
        (Gpu(nodes=True, trouble="the probe of the driver hung: line"), "kernel's log"),
        (Gpu(library=True, error=34), "stub"),
        (Gpu(nodes=True, library=True, error=803), "reboot"),
        (Gpu(nodes=True, library=True, error=802), "fabricmanager"),
        (Gpu(nodes=True, library=True, error=555), "nvidia-smi"),
    ],
)
def test_a_broken_driver_fails_with_a_remedy(driver: Gpu, words: str) -> None:
    report = Report()
    gpu_visible.check(Context(Declared(), driver), report)
    assert report.status == "fail"
    assert words in report.findings[0]["remedy"]


@pytest.mark.parametrize(
    ("difference", "device", "status"),
    [
        (1e-4, "/device:GPU:0", "pass"),
        (1.0, "/device:GPU:0", "fail"),
        (float("inf"), "/device:GPU:0", "fail"),
        (0.0, "/device:CPU:0", "fail"),
    ],
)
def test_a_kernel(difference: float, device: str, status: str) -> None:
    report = Report()
    gpu_kernels.judge("x", difference, device, report)
    assert report.status == status


def test_distance_fails_closed() -> None:
    assert distance([1.0, 2.0], [1.0, 2.0]) == 0.0
    assert distance([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)
    assert distance([float("nan")], [1.0]) == float("inf")
    assert distance([1.0], [1.0, 2.0]) == float("inf")
    assert distance([], []) == float("inf")


def test_every_line_of_pip_is_an_error() -> None:
    good, bad, silent = Report(), Report(), Report()
    pip_check.judge(0, "No broken requirements found.\n", "", good)
    pip_check.judge(1, "keras 2.15.0 requires six\nnumpy 2 is not supported\n", "", bad)
    pip_check.judge(2, "", "Traceback", silent)
    assert good.findings == []
    assert len(bad.findings) == 2
    assert silent.findings[0]["evidence"] == "Traceback"


def test_without_pip_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NotRunError, match="pip is not installed"):
        pip_check.check(Context(), Report())
    report = Report()
    pip_check.check(Context(Declared(cell="c", packages=("pip",))), report)
    assert report.findings[0]["message"] == "pip is in the lock, but not installed"


def test_what_c_code_writes_to_stderr_is_copied() -> None:
    with stderr_copied() as log:
        os.write(2, b"W Cannot dlopen some GPU libraries.\nI other\n")
    assert log.lines_with("Cannot dlopen") == ["W Cannot dlopen some GPU libraries."]
