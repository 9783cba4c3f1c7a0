"""Loaded against found: the decisions, and one real process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tfenv_verify.checks import _loaded
from tfenv_verify.declared import Declared, Library
from tfenv_verify.protocol import Report

CUDA = "/opt/tfenv/cuda/nvidia"
OURS = Declared(cell="c", cuda_folders=("/opt/tfenv/cuda",))
CUDART = Library("cudart", "libcudart.so.12")
RIGHT = f"{CUDA}/cuda_runtime/lib/libcudart.so.12"


def inspect(*files: str, declared: Declared = OURS, found: str = RIGHT, missing: str = "") -> Report:
    report = Report()

    def find(library: Library) -> dict[str, Any]:
        return {"missing": missing} if missing else {"path": found}

    _loaded.inspect(declared, files, [CUDART], find, report)
    return report


def messages(report: Report) -> list[str]:
    return [f["message"] for f in report.findings if f["severity"] == "error"]


def test_the_file_that_the_loader_finds_passes() -> None:
    assert inspect(RIGHT).findings == []
    assert inspect(RIGHT, RIGHT).findings == []
    assert inspect().findings == []


def test_another_file_than_found_fails() -> None:
    other = f"{CUDA}/other/lib/libcudart.so.12"
    assert messages(inspect(other)) == [f"{other} is loaded; the loader itself finds {RIGHT}"]
    assert "finds no file" in messages(inspect(RIGHT, found=""))[0]


def test_two_files_of_one_family_fail() -> None:
    other = f"{CUDA}/other/lib/libcudart.so.11.0"
    found = messages(inspect(RIGHT, other))
    assert found[0] == f"libcudart is loaded 2 times: {RIGHT} and {other}"
    assert found[1] == "libraries of more than one CUDA are loaded"
    assert len(found) == 3, "the one that is not found is said, too"
    bundled = f"{CUDA}/other/lib/libcudart-d0da41ae.so.12"
    assert "loaded 2 times" in messages(inspect(RIGHT, bundled))[0]


def test_a_file_outside_the_declared_folders_fails() -> None:
    other = "/usr/local/cuda-11.8/lib64/libcudart.so.12"
    (found,) = messages(inspect(other, found=other))
    assert found == f"{other} is loaded; the image's CUDA is in /opt/tfenv/cuda"
    assert inspect(other, found=other, declared=Declared(cell="c")).findings == []
    beside = "/opt/tfenv/cuda-other/libcudart.so.12"
    assert len(messages(inspect(beside, found=beside))) == 1


def test_links_are_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "libcudart.so.12.2.140", tmp_path / "libcudart.so.12"
    real.touch()
    link.symlink_to(real)
    declared = Declared(cell="c", cuda_folders=(str(tmp_path),))
    assert inspect(str(real), declared=declared, found=str(link)).findings == []


def test_what_the_loader_does_not_find_fails_ours_and_warns_for_foreign() -> None:
    assert "finds no libcudart.so.12" in messages(inspect(RIGHT, missing="no such file"))[0]
    foreign = inspect(RIGHT, missing="no such file", declared=Declared())
    assert [f["severity"] for f in foreign.findings] == ["warning"]


def test_a_library_that_nobody_declared_is_looked_for_by_its_own_name() -> None:
    asked = []

    def find(library: Library) -> dict[str, Any]:
        asked.append(library.soname)
        return {"path": f"{CUDA}/x/libcufile.so.0"}

    report = Report()
    _loaded.inspect(OURS, [f"{CUDA}/x/libcufile.so.0"], [CUDART], find, report)
    assert (asked, report.findings) == (["libcufile.so.0"], [])


@pytest.mark.parametrize(
    ("name", "is_cuda"),
    [
        ("libcudart.so.12", True),
        ("libcudnn_ops_infer.so.8", True),
        ("libnvrtc-builtins.so.12.2", True),
        ("libnvJitLink.so.12", True),
        ("libnccl.so.2", True),
        ("libcuda.so.1", False),
        ("libcuda.so.580.95.05", False),
        ("libnvidia-ptxjitcompiler.so.580.95.05", False),
        ("libcurl.so.4", False),
        ("libc.so.6", False),
        ("libcublas.a", False),
    ],
)
def test_the_drivers_own_files_and_others_are_left_out(name: str, is_cuda: bool) -> None:
    assert (_loaded.cuda_files([f"/lib/{name}"]) == [f"/lib/{name}"]) == is_cuda


def test_a_process_without_cuda_has_nothing_to_compare() -> None:
    report = Report()
    assert _loaded.compare_loaded(OURS, report) == []
    assert (report.findings, report.facts) == ([], {"mapped_cuda_files": []})


@pytest.mark.parametrize(
    ("name", "majors"),
    [
        ("libcudart.so.12", {"12"}),
        ("libcudart.so.11.0", {"11"}),
        ("libcudart.so.11.8.89", {"11"}),
        ("libcudart-d0da41ae.so.12", {"12"}),
        ("libcufft.so.10", {"11"}),
        ("libcusolver.so.11", {"11", "12"}),
        ("libcurand.so.10", {"11", "12", "13"}),
        ("libcupti.so.2022.3.0", set()),
        ("libcudnn.so.9", set()),
        ("libother.so.12", set()),
        ("libcudart.so", set()),
    ],
)
def test_the_cuda_of_a_library_is_told_by_its_name(name: str, majors: set[str]) -> None:
    assert _loaded.cuda_majors(f"/x/{name}") == majors


def test_libraries_of_two_cudas_fail() -> None:
    def loaded(*names: str) -> list[str]:
        report = Report()
        files = [f"{CUDA}/x/{name}" for name in names]
        _loaded.inspect(OURS, files, [], lambda library: {"path": f"{CUDA}/x/{library.soname}"}, report)
        return messages(report)

    assert loaded("libcudart.so.12", "libcufft.so.11", "libcusolver.so.11", "libcurand.so.10") == []
    assert loaded("libcudart.so.11.0", "libcufft.so.10", "libcusolver.so.11", "libcudnn.so.8") == []
    (found,) = loaded("libcudart.so.12", "libcufft.so.10")
    assert found == "libraries of more than one CUDA are loaded"
