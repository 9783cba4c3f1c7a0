from __future__ import annotations

from pathlib import Path

import pytest
from tfenv_verify.checks import ptxas
from tfenv_verify.declared import Declared
from tfenv_verify.protocol import Report

OURS = Declared(cell="c", cuda="12.2")


def toolkit(root: Path, release: str = "12.2", assembles: bool = True) -> Path:
    """A toolkit whose ptxas is a shell script that answers as the real one."""
    (root / "bin").mkdir(parents=True)
    (root / "nvvm/libdevice").mkdir(parents=True)
    (root / "nvvm/libdevice/libdevice.10.bc").write_text("BC")
    program = root / "bin/ptxas"
    work = 'cp "$2" "$4"' if assembles else "echo 'Fatal: bad PTX' >&2; exit 255"
    program.write_text(
        "#!/bin/sh\n"
        f"[ \"$1\" = --version ] && {{ echo 'Cuda tools, release {release}, V1'; exit 0; }}\n"
        f"{work}\n"
    )
    program.chmod(0o755)
    return root


def inspect(
    *roots: Path, declared: Declared = OURS, compiled: str = "12.2", on_path: str | None = None
) -> Report:
    report = Report()
    ptxas.inspect(declared, compiled, [str(root) for root in roots], on_path, report)
    return report


def errors(report: Report) -> str:
    return "\n".join(f["message"] for f in report.findings if f["severity"] == "error")


def test_the_right_toolkit_passes(tmp_path: Path) -> None:
    report = inspect(tmp_path / "absent", toolkit(tmp_path / "cuda"))
    assert (report.status, report.findings) == ("pass", [])
    assert report.facts["ptxas_version"] == "12.2"
    assert report.facts["cubin_bytes"] > 0


def test_nothing_found_names_every_place(tmp_path: Path) -> None:
    report = inspect(tmp_path / "a", tmp_path / "b")
    assert "ptxas is not where XLA looks" in errors(report)
    assert "libdevice.10.bc is not where XLA looks" in errors(report)
    assert str(tmp_path / "b") in report.findings[0]["evidence"]


def test_ptxas_on_path_is_the_last_resort(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "cuda")
    report = inspect(tmp_path / "a", on_path=str(root / "bin/ptxas"))
    assert report.facts["ptxas"] == str(root / "bin/ptxas")
    assert "libdevice" in errors(report)


@pytest.mark.parametrize("release", ["12.1", "12.3", "13.0"])
def test_another_release_than_the_tag_declares_fails(tmp_path: Path, release: str) -> None:
    report = inspect(toolkit(tmp_path / "cuda", release))
    assert "the tag declares CUDA 12.2" in errors(report)


@pytest.mark.parametrize(("release", "severity"), [("11.8", "error"), ("12.9", "warning")])
def test_an_undeclared_one_must_not_be_older(tmp_path: Path, release: str, severity: str) -> None:
    report = inspect(toolkit(tmp_path / "cuda", release), declared=Declared(), compiled="12.5")
    assert [f["severity"] for f in report.findings] == [severity]


@pytest.mark.parametrize(
    ("source", "release", "locked", "status"),
    [
        ("base", "11.8", "11.8.89", "pass"),  # no wheel of 11.2 exists
        ("base", "11.2", "", "pass"),
        ("base", "11.8", "", "fail"),  # nothing declares it
        ("base", "11.8", "11.7.99", "fail"),
        ("base", "11.1", "11.1.105", "fail"),
        ("base", "12.2", "12.2.140", "fail"),
        ("wheels", "11.8", "11.8.89", "fail"),
    ],
)
def test_a_locked_ptxas_beside_an_image_may_be_newer(
    tmp_path: Path, source: str, release: str, locked: str, status: str
) -> None:
    declared = Declared(cell="c", cuda="11.2", compiled_cuda="11.2", cuda_from=source, ptxas=locked)
    report = inspect(toolkit(tmp_path / "cuda", release), declared=declared, compiled="11.2")
    assert report.status == status


def test_one_that_does_not_assemble_fails_with_its_words(tmp_path: Path) -> None:
    report = inspect(toolkit(tmp_path / "cuda", assembles=False))
    assert "does not assemble" in errors(report)
    assert "bad PTX" in report.findings[0]["evidence"]


def test_one_that_does_not_run_fails(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "cuda")
    (root / "bin/ptxas").write_bytes(b"\x7fELF no program")
    assert "tells no release" in errors(inspect(root))


def test_places_are_in_xlas_order() -> None:
    flags = {"XLA_FLAGS": "--xla_dump_to=/x --xla_gpu_cuda_data_dir=/mine"}
    assert ptxas.candidate_roots("12.2", flags, ["/site"]) == [
        "/mine",
        "/usr/local/cuda-12.2",
        "/usr/local/cuda",
        "/site/nvidia/cuda_nvcc",
    ]
    assert ptxas.candidate_roots("", {}, []) == ["/usr/local/cuda"]
