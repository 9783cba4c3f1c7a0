from __future__ import annotations

import ctypes
from typing import Any

import pytest
from tfenv_verify.cuda_libraries import KNOWN, cudnn_parts, known, soname, wanted_by_default
from tfenv_verify.versions import agree, numbers


class Function:
    """A C function: fills the pointers, or returns the number if there are none."""

    def __init__(self, *values: int, status: int = 0) -> None:
        self.values, self.status = values, status
        self.restype: Any = ctypes.c_int

    def __call__(self, *arguments: Any) -> int:
        if not arguments:
            return self.values[0]
        if isinstance(arguments[0], int):
            arguments[1]._obj.value = self.values[arguments[0]]
        else:
            for argument, value in zip(arguments, self.values, strict=True):
                argument._obj.value = value
        return self.status


class Fake:
    def __init__(self, **functions: Function) -> None:
        self.__dict__.update(functions)


@pytest.mark.parametrize(
    ("name", "function", "version"),
    [
        ("cudart", Function(12020), (12, 2)),
        ("cudart", Function(11080), (11, 8)),
        ("cublas", Function(12, 2, 5), (12, 2, 5)),
        ("cublasLt", Function(120205), (12, 2, 5)),
        ("cufft", Function(11008), (11, 0, 8)),
        ("curand", Function(10, 3, 3), (10, 3, 3)),
        ("cusolver", Function(11, 5, 2), (11, 5, 2)),
        ("cusparse", Function(12, 1, 2), (12, 1, 2)),
        ("nvrtc", Function(12, 2), (12, 2)),
        ("nvjitlink", Function(12, 5), (12, 5)),
        ("cupti", Function(20), (20,)),
        ("nvshmem_host", Function(3, 2, 5), (3, 2, 5)),
        ("nccl", Function(21605), (2, 16, 5)),
        ("nccl", Function(2804), (2, 8, 4)),
        ("cudnn", Function(8904), (8, 9, 4)),
        ("cudnn", Function(90300), (9, 3, 0)),
        ("cudnn", Function(91002), (9, 10, 2)),
    ],
)
def test_each_library_tells_its_version(name: str, function: Function, version: tuple[int, ...]) -> None:
    row = known(name)
    assert row is not None
    assert row.read(Fake(**{row.call: function})) == version


def test_a_part_of_cudnn_tells_a_version_only_if_it_fits_the_others() -> None:
    row = known("cudnn_ops_infer")
    assert row is not None
    fits, version = Function(0), Function(8904)
    assert row.read(Fake(cudnnOpsInferVersionCheck=fits, cudnnGetVersion=version)) == (8, 9, 4)
    with pytest.raises(OSError, match="error 4"):
        row.read(Fake(cudnnOpsInferVersionCheck=Function(4), cudnnGetVersion=version))
    silent = known("cudnn_heuristic")
    assert silent is not None
    assert silent.read(Fake()) == ()


def test_a_row_says_which_copies_have_no_call() -> None:
    rows = {row.name: row for row in KNOWN}
    assert not rows["nvjitlink"].tells("12.2")
    assert rows["nvjitlink"].tells("12.3")
    assert rows["nvjitlink"].tells("")
    assert not rows["cudnn_heuristic"].tells("12.5")
    assert all(row.tells("11.0") for name, row in rows.items() if not row.silent and name != "nvjitlink")


def test_a_call_that_fails_or_is_not_there_is_no_version() -> None:
    row = known("cudart")
    assert row is not None
    with pytest.raises(OSError, match="error 35"):
        row.read(Fake(cudaRuntimeGetVersion=Function(0, status=35)))
    with pytest.raises(AttributeError):
        row.read(Fake())


@pytest.mark.parametrize(
    ("name", "cuda", "expected"),
    [
        ("cudart", "11.2", "libcudart.so.11.0"),
        ("cudart", "12.2", "libcudart.so.12"),
        ("cudart", "14.0", ""),
        ("cufft", "11.8", "libcufft.so.10"),
        ("cufft", "12.2", "libcufft.so.11"),
        ("cusolver", "11.0", "libcusolver.so.10"),
        ("cusolver", "11.2", "libcusolver.so.11"),
        ("cupti", "11.8", "libcupti.so.11.8"),
        ("nvjitlink", "11.8", ""),
        ("nvrtc", "11.8", "libnvrtc.so.11.2"),
    ],
)
def test_sonames_follow_the_cuda_version(name: str, cuda: str, expected: str) -> None:
    row = known(name)
    assert row is not None
    assert soname(row, cuda) == expected


def test_rows_are_found_by_soname_and_strangers_are_not() -> None:
    assert known("anything", "libnvJitLink.so.12") is known("nvjitlink")
    assert known("cudnn part", "libcudnn_ops_infer.so.8") is known("cudnn_ops_infer")
    assert known("libcurl", "libcurl.so.4") is None
    assert len({row.name for row in KNOWN}) == len(KNOWN)


def test_an_undeclared_image_has_what_every_gpu_build_opens() -> None:
    found = [library.soname for library in wanted_by_default("12.2", 8)]
    assert "libcublasLt.so.12" in found
    assert found[-1] == "libcudnn.so.8"
    assert not any("nccl" in name for name in found)


def test_cudnn_parts_differ_by_major_version() -> None:
    assert "libcudnn_ops_infer.so.8" in cudnn_parts(8)
    assert "libcudnn_graph.so.9" in cudnn_parts(9)
    assert cudnn_parts(7) == ()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("12.2.5", "12.2.5.6", True),
        ("12.2", "12.2.140", True),
        ("12.2.4", "12.2.5.6", False),
        ("12", "12.2", True),
        ("", "12.2", False),
        ("2.15.0.post1", "2.15.0", True),
    ],
)
def test_versions_agree_as_far_as_both_go(one: str, other: str, expected: bool) -> None:
    assert agree(one, other) is expected


def test_numbers_stop_at_text() -> None:
    assert numbers("2.16.0rc1") == (2, 16, 0)
    assert numbers("nightly") == ()
