"""Where the code of kernels comes from, the compute cache, and results that are off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tfenv_verify.checks import _wheel_kernels as kernels
from tfenv_verify.checks import gpu_kernels, nccl
from tfenv_verify.declared import Declared, parse
from tfenv_verify.protocol import Report, UsageError

V215 = parse(
    {
        "cell": "c",
        "compiled": {
            "sass": ["5.0", "6.0", "7.0", "7.5"],
            "ptx": [
                {"from": "8.0", "isa": "7.1", "what": "element-wise kernels"},
                {"from": "9.0", "isa": "8.1", "what": "every kernel"},
            ],
            "unusable": [],
            "nccl": {"version": "2.16.5", "how": "linked", "sass": ["7.0", "8.0"]},
        },
    }
)
V220 = parse(
    {
        "cell": "c",
        "compiled": {
            "sass": ["8.0", "8.9"],
            "ptx": [{"from": "9.0", "until": "9.0", "what": "element-wise kernels"}],
            "unusable": [{"from": "10.0", "what": "element-wise kernels", "why": "PTX for sm_90a alone"}],
        },
    }
)


def said(call: Any, *arguments: Any) -> list[tuple[str, str]]:
    report = Report()
    call(*arguments, report)
    return [(finding["severity"], finding["message"]) for finding in report.findings]


@pytest.mark.parametrize(
    ("declared", "gpu", "has"),
    [
        (V215, (7, 0), kernels.NATIVE),
        (V215, (7, 2), kernels.NATIVE),
        (V215, (8, 6), kernels.PTX),
        (V215, (9, 0), kernels.PTX),
        (V215, (3, 5), kernels.NONE),
        (V215, (), kernels.UNKNOWN),
        (V220, (8, 6), kernels.NATIVE),
        (V220, (9, 0), kernels.PTX),
        (V220, (10, 0), kernels.NONE),
    ],
)
def test_the_declaration_tells_what_a_gpu_is_given(declared: Declared, gpu: Any, has: str) -> None:
    assert kernels.wheel(declared, {}, gpu)[0] == has


def test_an_image_that_declares_nothing_is_asked_for_its_build_information() -> None:
    info = {"cuda_compute_capabilities": ["sm_60", "sm_80", "compute_90"]}
    found = [kernels.wheel(Declared(), info, gpu)[0] for gpu in ((8, 6), (9, 0), (12, 0), (5, 0), (7, 0))]
    assert found == [kernels.NATIVE, kernels.NATIVE, kernels.PTX, kernels.NONE, kernels.NONE]
    assert kernels.built({"cuda_compute_capabilities": "sm_80,compute_120"})[1] == ["12.0"]
    assert kernels.wheel(Declared(), {}, (9, 0)) == (kernels.UNKNOWN, [])


def test_rules_without_a_gpu_are_refused() -> None:
    with pytest.raises(UsageError, match="needs what and from"):
        parse({"compiled": {"ptx": [{"what": "x"}]}})


def test_nccl_without_code_for_the_gpu_is_known() -> None:
    assert kernels.nccl_unserved(V215, (9, 0))
    assert not kernels.nccl_unserved(V215, (8, 9))
    assert not kernels.nccl_unserved(V215, ())
    assert not kernels.nccl_unserved(V220, (9, 0)), "nothing is known of it"
    assert said(nccl.kernels, V215, (9, 0), 2)[0][0] == "warning"
    assert said(nccl.kernels, V215, (9, 0), 1)[0][0] == "info"
    assert said(nccl.kernels, V215, (8, 0), 2) == []


def test_ptx_and_missing_code_are_said() -> None:
    def source(has: str, which: list[str], slowest: float = 0.1) -> list[tuple[str, str]]:
        return said(gpu_kernels.source, has, which, "9.0", slowest, "/cache")

    assert source(kernels.NATIVE, []) == []
    assert source(kernels.PTX, ["every kernel: PTX"])[0][0] == "info"
    assert source(kernels.NONE, [])[0][0] == "warning"
    assert source(kernels.NATIVE, ["element-wise: none"])[0][0] == "warning"
    assert source(kernels.UNKNOWN, []) == []
    assert source(kernels.UNKNOWN, [], 13.0)[0][0] == "info"


def test_the_compute_cache(tmp_path: Path) -> None:
    def cache(
        environ: dict[str, str], folder: str = str(tmp_path), after: int = 1 << 20, has: str = kernels.PTX
    ) -> list[str]:
        found = said(gpu_kernels.cache, environ, folder, 0, after, has)
        assert {severity for severity, _ in found} <= {"warning"}
        return [message for _, message in found]

    assert cache({}) == []
    assert cache({"CUDA_CACHE_MAXSIZE": str(1 << 30)}) == []
    assert "too small" in cache({"CUDA_CACHE_MAXSIZE": str(32 << 20)})[0]
    assert "too small" in cache({"CUDA_CACHE_MAXSIZE": "lots"})[0]
    assert "is full" in cache({"CUDA_CACHE_MAXSIZE": str(300 << 20)}, after=290 << 20)[0]
    assert "cannot be written" in cache({}, folder="/proc/none")[0]
    assert "nothing is in the compute cache" in cache({}, after=0)[0]
    assert cache({}, after=0, has=kernels.NATIVE) == []
    assert "in every process" in cache({"CUDA_CACHE_DISABLE": "1"})[0]


def test_the_folder_and_its_size(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_bytes(bytes(100))
    assert gpu_kernels.size(str(tmp_path)) == 100
    assert gpu_kernels.size("/nowhere") == 0
    assert gpu_kernels.cache_folder({"HOME": "/h"}) == "/h/.nv/ComputeCache"
    assert gpu_kernels.cache_folder({"HOME": "/h", "CUDA_CACHE_PATH": "/c"}) == "/c"


@pytest.mark.parametrize("off", [1e-2, float("inf"), float("nan")])
def test_a_result_that_is_off_fails(off: float) -> None:
    assert said(gpu_kernels.judge, "matmul", off, "/device:GPU:0")[0][0] == "error"


def test_a_result_that_is_near_passes_and_one_of_the_cpu_does_not() -> None:
    assert said(gpu_kernels.judge, "matmul", 1e-3, "/device:GPU:0") == []
    assert "not on a GPU" in said(gpu_kernels.judge, "matmul", 0.0, "/device:CPU:0")[0][1]


def test_an_operation_that_raises_fails_with_its_traceback() -> None:
    report = Report()
    try:
        raise RuntimeError("no kernel image is available for execution on the device")
    except RuntimeError as error:
        gpu_kernels.failed("matmul", error, report)
    assert "no kernel image" in report.findings[0]["message"]
    assert "Traceback" in report.findings[0]["evidence"]
