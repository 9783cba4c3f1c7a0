from __future__ import annotations

from pathlib import Path

import pytest
from tfenv_verify.checks import environment
from tfenv_verify.declared import Declared
from tfenv_verify.protocol import Report

OURS = Declared(cell="c", env={"NVIDIA_VISIBLE_DEVICES": "all"})


def severities(report: Report) -> list[str]:
    return [f["severity"] for f in report.findings]


@pytest.mark.parametrize(
    ("environ", "wrong"),
    [
        ({"NVIDIA_VISIBLE_DEVICES": "all", "OTHER": "1"}, ""),
        ({"NVIDIA_VISIBLE_DEVICES": "none"}, "'none'"),
        ({"NVIDIA_VISIBLE_DEVICES": ""}, "''"),
        ({"NVIDIA_VISIBLE_DEVICES": "0,"}, "'0,'"),
        ({"NVIDIA_VISIBLE_DEVICES": "voided"}, "'voided'"),
        ({}, "not set"),
    ],
)
def test_declared_variables_are_compared(environ: dict[str, str], wrong: str) -> None:
    report = Report()
    environment.variables(OURS, environ, report)
    assert (report.status == "fail") == bool(wrong)
    assert all(wrong in f["message"] for f in report.findings)


@pytest.mark.parametrize(
    "given",
    [
        "void",
        "0",
        "0,3",
        "0:1",
        "GPU-8a4ef2f0-0c5c-1d3d-5c1e-2a1c5f0d1e2b",
        "MIG-8a4ef2f0-0c5c-1d3d-5c1e-2a1c5f0d1e2b",
        "nvidia.com/gpu=0",
    ],
)
def test_what_a_container_runtime_sets_is_said_not_failed(given: str) -> None:
    report = Report()
    environment.variables(OURS, {"NVIDIA_VISIBLE_DEVICES": given}, report)
    assert severities(report) == ["info"]
    other = Report()
    environment.variables(Declared(cell="c", env={"NVIDIA_OTHER": "all"}), {"NVIDIA_OTHER": given}, other)
    assert severities(other) == ["error"]


@pytest.mark.parametrize(
    "name",
    [
        "TF_XLA_FLAGS",
        "XLA_FLAGS",
        "TF_ENABLE_ONEDNN_OPTS",
        "TF_USE_LEGACY_KERAS",
        "KERAS_BACKEND",
        "NVIDIA_TF32_OVERRIDE",
        "NCCL_P2P_DISABLE",
        "CUDA_FORCE_PTX_JIT",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
    ],
)
def test_a_variable_that_changes_tensorflow_is_told(name: str) -> None:
    report = Report()
    environment.switches(OURS, {name: "1"}, report)
    assert [(f["severity"], f["evidence"]) for f in report.findings] == [("info", f"{name}=1")]


def test_the_images_own_variables_and_those_of_the_log_are_not_told() -> None:
    report = Report()
    own = Declared(cell="c", env={"CUDA_CACHE_PATH": "/x"})
    environ = {"CUDA_CACHE_PATH": "/x", "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "0", "HOME": "/"}
    environment.switches(own, environ, report)
    assert report.findings == []
    environment.switches(own, {"CUDA_CACHE_PATH": "/y"}, report)
    assert severities(report) == ["info"]


def test_a_writable_home_passes(tmp_path: Path) -> None:
    report = Report()
    environment.home(OURS, {"HOME": str(tmp_path)}, report)
    assert report.findings == []


def test_a_home_that_is_not_there_fails_ours_and_warns_for_foreign(tmp_path: Path) -> None:
    for environ in ({}, {"HOME": str(tmp_path / "absent")}):
        ours, foreign = Report(), Report()
        environment.home(OURS, environ, ours)
        environment.home(Declared(), environ, foreign)
        assert (severities(ours), severities(foreign)) == (["error"], ["warning"])


def test_a_home_that_cannot_be_written_fails() -> None:
    report = Report()
    environment.home(OURS, {"HOME": "/proc"}, report)  # nobody can write there, not even root
    assert "cannot write" in report.findings[0]["message"]


def test_the_cache_may_be_creatable(tmp_path: Path) -> None:
    report = Report()
    environment.cuda_cache({"CUDA_CACHE_PATH": str(tmp_path / "a/b")}, report)
    assert report.findings == []
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "environ", [{"CUDA_CACHE_PATH": "/proc/cache"}, {"HOME": "/proc"}, {"CUDA_CACHE_DISABLE": "1"}]
)
def test_a_cache_that_cannot_be_written_is_a_warning(environ: dict[str, str]) -> None:
    report = Report()
    environment.cuda_cache(environ, report)
    assert severities(report) == ["warning"]


def test_a_folder_for_temporary_files_is_asked_for(tmp_path: Path) -> None:
    good, bad = Report(), Report()
    environment.temporary({"TMPDIR": str(tmp_path)}, good)
    environment.temporary({"TMP": "/proc"}, bad)
    assert (severities(good), severities(bad)) == ([], ["warning"])
    assert "--tmpfs /tmp" in bad.findings[0]["remedy"]


def test_a_file_in_the_way_is_not_creatable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not environment.creatable(str(tmp_path / "file/cache"))
