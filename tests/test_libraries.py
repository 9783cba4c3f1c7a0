"""Which libraries are opened, by what TensorFlow was compiled for and by the set that it gets."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from tfenv import facts, libraries
from tfenv.errors import UsageError
from tfenv.facts import Compiled
from tfenv.matrix import load_matrix

SOME = replace(facts.compiled("2.15.1"), nccl_how="linked")


def compiled(cuda: str, how: str = "linked") -> Compiled:
    return replace(SOME, cuda=cuda, nccl_how=how)


def sonames(of: Compiled, cuda: str, cudnn: str) -> dict[str, str]:
    return {library.name: library.soname for library in libraries.opened(of, cuda=cuda, cudnn=cudnn)}


def test_tensorflow_asks_for_its_own_names_and_the_libraries_for_theirs() -> None:
    found = sonames(compiled("11.2"), "11.8", "8.6")
    assert found["cupti"] == "libcupti.so.11.2"
    assert found["nvrtc"] == "libnvrtc.so.11.2"
    assert found["cusolver"] == "libcusolver.so.11"
    assert found["cudart"] == "libcudart.so.11.0"
    assert "nvJitLink" not in found
    assert sonames(compiled("11.8"), "11.8", "8.9")["cupti"] == "libcupti.so.11.8"


def test_cuda_11_0_has_another_cusolver_and_nvrtc() -> None:
    found = sonames(compiled("11.0"), "11.0", "8.0")
    assert (found["cusolver"], found["nvrtc"]) == ("libcusolver.so.10", "libnvrtc.so.11.0")
    # The libraries are those of 11.8, and TensorFlow does not know.
    newer = sonames(compiled("11.0"), "11.8", "8.6")
    assert (newer["cusolver"], newer["nvrtc"]) == ("libcusolver.so.10", "libnvrtc.so.11.2")


def test_only_cudnn_8_6_opens_nvrtc_without_a_version() -> None:
    assert sonames(compiled("11.8"), "11.8", "8.6")["nvrtc_of_cudnn"] == "libnvrtc.so"
    assert "nvrtc_of_cudnn" not in sonames(compiled("12.2"), "12.2", "8.9.4.25")


def test_the_parts_of_cudnn_9() -> None:
    found = sonames(compiled("12.5.1"), "12.5", "9.3")
    assert found["cudnn"] == "libcudnn.so.9"
    assert "libcudnn_engines_runtime_compiled.so.9" in found.values()
    assert not any("_infer" in soname for soname in found.values())


def test_nccl_is_opened_where_it_is_loaded_from_outside() -> None:
    assert sonames(compiled("12.5.1", "loaded"), "12.9", "9.10")["nccl"] == "libnccl.so.2"
    assert "nccl" not in sonames(compiled("12.5.1", "linked"), "12.9", "9.10")


def test_all_libraries_of_cuda_12_and_cudnn_8() -> None:
    assert sonames(compiled("12.2"), "12.2", "8.9") == {
        "cudart": "libcudart.so.12",
        "cublas": "libcublas.so.12",
        "cublasLt": "libcublasLt.so.12",
        "cufft": "libcufft.so.11",
        "curand": "libcurand.so.10",
        "cusolver": "libcusolver.so.11",
        "cusparse": "libcusparse.so.12",
        "cupti": "libcupti.so.12",
        "nvJitLink": "libnvJitLink.so.12",
        "nvrtc": "libnvrtc.so.12",
        "cudnn": "libcudnn.so.8",
        "cudnn_ops_infer": "libcudnn_ops_infer.so.8",
        "cudnn_ops_train": "libcudnn_ops_train.so.8",
        "cudnn_cnn_infer": "libcudnn_cnn_infer.so.8",
        "cudnn_cnn_train": "libcudnn_cnn_train.so.8",
        "cudnn_adv_infer": "libcudnn_adv_infer.so.8",
        "cudnn_adv_train": "libcudnn_adv_train.so.8",
    }


def test_no_library_is_left_out_of_an_image() -> None:
    cells = load_matrix(Path(__file__).parents[1] / "matrix.yaml").cells
    assert cells
    for cell in cells:
        release, of = facts.compiled(cell.row.tensorflow), cell.cuda_set
        for library in libraries.opened(release, cuda=of.cuda, cudnn=of.cudnn):
            folder = re.sub(r"^nvidia-|-cu\d+$", "", library.wheel).replace("-", "_")
            path = f"nvidia/{folder}/lib/{library.soname}"
            assert not [rule.what for rule in cell.row.trim if fnmatchcase(path, rule.what)], cell.name
            assert library.wheel not in {rule.what for rule in of.without}, cell.name


@pytest.mark.parametrize("cuda", ["11.8", "12.9"])
def test_wheels_are_of_the_sets_major_version(cuda: str) -> None:
    major = cuda.split(".")[0]
    found = libraries.opened(compiled(cuda, "loaded"), cuda=cuda, cudnn="8.9")
    assert {library.wheel.rpartition("-")[2] for library in found} == {f"cu{major}"}


def test_what_has_to_come_by_wheel_and_what_may() -> None:
    assert libraries.only_by_wheel() == {"cupti"}
    assert [library.soname for library in libraries.with_wheel("12.9")] == ["libnvshmem_host.so.3"]
    assert libraries.with_wheel("11.8") == ()


@pytest.mark.parametrize(("cuda", "cudnn"), [("10.2", "8.6"), ("12.2", "7.6")])
def test_unknown_versions_say_what_is_known(cuda: str, cudnn: str) -> None:
    with pytest.raises(UsageError, match="are not known") as caught:
        libraries.opened(compiled("12.2"), cuda=cuda, cudnn=cudnn)
    assert "libraries.json" in caught.value.remedy


def test_the_names_are_those_that_the_audit_read_from_each_wheel() -> None:
    read = [c for c in map(facts.compiled, facts.releases()) if c.opens]
    assert len(read) >= 19
    for release in read:
        found = libraries.opened(release, cuda=release.cuda, cudnn=release.cudnn)
        told = {library.soname for library in found if library.opened_by == "tensorflow"}
        # From 2.14 on nothing opens it, but the and-cuda extra brings it.
        assert told - set(release.opens) <= {"libcurand.so.10"}, release.tensorflow
        assert not set(release.opens) - told, release.tensorflow
