from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tfenv_verify import distributions, loader
from tfenv_verify.checks import libraries
from tfenv_verify.context import Context
from tfenv_verify.declared import Declared, Library
from tfenv_verify.library_probe import mapped_path, probe
from tfenv_verify.protocol import Report

OURS = Declared(cell="c", cuda="12.2", cudnn="8.9", compiled_cuda="12.2", compiled_cudnn="8.9.4")
CUDART = Library("cudart", "libcudart.so.12", "12.2.140", "nvidia-cuda-runtime-cu12")
CUDNN = Library("cudnn", "libcudnn.so.8", "8.9.4.25", "nvidia-cudnn-cu12")


def found(version: str) -> dict[str, Any]:
    return {"path": "/opt/lib/libx.so", "version": version, "trouble": ""}


def inspect(
    declared: Declared, library: Library, answer: dict[str, Any], folders: tuple[str, ...] = ()
) -> Report:
    report = Report()

    def opened(name: str, soname: str) -> dict[str, Any]:
        return found("8.9.4") if name != library.name else answer

    libraries.inspect(declared, declared.compiled_cuda, [library], report, opened, folders)
    return report


def errors(report: Report) -> str:
    return "\n".join(f["message"] for f in report.findings if f["severity"] == "error")


def test_right_versions_pass() -> None:
    assert inspect(OURS, CUDART, found("12.2")).status == "pass"
    report = inspect(OURS, CUDNN, found("8.9.4"))
    assert report.status == "pass"
    assert "libcudnn_adv_train.so.8" in report.facts["libraries"]


@pytest.mark.parametrize("loaded", ["12.1", "12.3", "11.8"])
def test_another_cuda_than_the_tag_declares_fails(loaded: str) -> None:
    assert "declares CUDA 12.2" in errors(inspect(OURS, CUDART, found(loaded)))


def test_the_locked_wheel_is_compared_by_common_prefix() -> None:
    cublas = Library("cublas", "libcublas.so.12", "12.2.5.6", "nvidia-cublas-cu12")
    assert inspect(OURS, cublas, found("12.2.5")).status == "pass"
    assert "nvidia-cublas-cu12 has 12.2.5.6" in errors(inspect(OURS, cublas, found("12.2.4")))


@pytest.mark.parametrize(
    ("loaded", "status"), [("8.9.0", "pass"), ("8.10.0", "pass"), ("8.8.1", "fail"), ("9.0", "fail")]
)
def test_cudnn_follows_the_rule_of_tensorflow(loaded: str, status: str) -> None:
    foreign = Declared(compiled_cudnn="8.9.4")
    assert inspect(foreign, Library("cudnn", "libcudnn.so.8"), found(loaded)).status == status


def test_cudnn_other_than_the_tag_fails_even_if_tensorflow_takes_it() -> None:
    assert "declares cuDNN 8.9" in errors(inspect(OURS, CUDNN, found("8.10.0")))


@pytest.mark.parametrize(
    ("loaded", "status"), [("12.5", "pass"), ("12.9", "pass"), ("12.3", "fail"), ("13.0", "fail")]
)
def test_an_undeclared_cuda_may_be_newer_within_its_major_version(loaded: str, status: str) -> None:
    report = inspect(Declared(compiled_cuda="12.5"), Library("cudart", "libcudart.so.12"), found(loaded))
    assert report.status == status


def test_a_missing_library_fails_and_says_what_holds_it() -> None:
    report = inspect(OURS, CUDART, {"missing": "libcudart.so.12: cannot open shared object file"})
    assert "libcudart.so.12 cannot be opened" in errors(report)
    assert "nvidia-cuda-runtime-cu12" in report.findings[0]["remedy"]


def test_a_library_found_only_through_runpath_fails_ours_and_warns_for_foreign(
    tmp_path: Path,
) -> None:
    (tmp_path / "libcudart.so.12").touch()

    def opened(name: str, soname: str) -> dict[str, Any]:
        return found("12.2") if Path(soname).is_absolute() else {"missing": "no such file"}

    for declared, severity in ((OURS, "error"), (Declared(compiled_cuda="12.2"), "warning")):
        report = Report()
        libraries.inspect(declared, "12.2", [CUDART], report, opened, [str(tmp_path)])
        assert [f["severity"] for f in report.findings] == [severity]
        assert "loader does not look" in report.findings[0]["message"]


def test_a_library_that_is_there_by_another_name_needs_a_link(tmp_path: Path) -> None:
    (tmp_path / "libnvrtc.so.11.2").touch()
    report = Report()
    plain = Library("nvrtc_of_cudnn", "libnvrtc.so", "11.8.89", "nvidia-cuda-nvrtc-cu11")
    libraries.inspect(
        OURS, "12.2", [plain], report, lambda n, s: {"missing": "no such file"}, [str(tmp_path)]
    )
    assert report.status == "fail"
    assert f"{tmp_path}/libnvrtc.so.11.2 that second name" in report.findings[0]["remedy"]


SILENT = {"path": "/x", "version": "", "trouble": "it has no f"}


def test_a_library_that_tells_no_version_fails_a_cell_and_is_said_of_a_foreign_image() -> None:
    report = inspect(OURS, CUDART, SILENT)
    assert "libcudart.so.12 (/x) does not tell its version" in errors(report)
    assert report.findings[0]["evidence"] == "it has no f"
    foreign = inspect(Declared(compiled_cuda="12.2"), CUDART, SILENT)
    assert [f["severity"] for f in foreign.findings] == ["info"]


def test_a_library_that_the_table_does_not_know_fails_a_cell() -> None:
    assert "does not tell" in errors(inspect(OURS, Library("new", "libcunew.so.1"), SILENT))


def test_a_copy_of_before_the_call_is_exempt_by_its_row() -> None:
    jit = Library("nvJitLink", "libnvJitLink.so.12", "12.2.140", "nvidia-nvjitlink-cu12")
    assert [f["severity"] for f in inspect(OURS, jit, SILENT).findings] == ["info"]
    newer = Declared(cell="c", cuda="12.3", compiled_cuda="12.3")
    assert "does not tell" in errors(inspect(newer, jit, SILENT))


NO_DRIVER = {"path": "", "version": "", "trouble": "f returned error 35", "error": 35}


def without_driver(tmp_path: Path, file: str, recorded: str | None, **more: Any) -> Report:
    path = tmp_path / file
    path.touch()
    declared = Declared(cell="c", cuda="11.8", cudnn="8.6", compiled_cuda="11.2")
    cudart = Library("cudart", "libcudart.so.11.0", "11.8.89", "nvidia-cuda-runtime-cu11")
    report = Report()
    answer = {**NO_DRIVER, "path": str(path), **more}
    libraries.inspect(declared, "11.2", [cudart], report, lambda n, s: dict(answer), (), lambda p: recorded)
    return report


def test_a_runtime_that_needs_a_driver_to_tell_its_version_is_known_by_its_file(tmp_path: Path) -> None:
    assert without_driver(tmp_path, "libcudart.so.11.0", "11.8.89").status == "pass"
    assert without_driver(tmp_path, "libcudart.so.11.8.89", None).status == "pass"
    assert "declares CUDA 11.8" in errors(without_driver(tmp_path, "libcudart.so.11.7.99", None))
    assert "declares CUDA 11.8" in errors(without_driver(tmp_path, "libcudart.so.11.0", "11.7.99"))
    assert "does not tell" in errors(without_driver(tmp_path, "libcudart.so.11.0", None))


def test_another_error_than_the_missing_driver_is_none_to_work_around(tmp_path: Path) -> None:
    report = without_driver(tmp_path, "libcudart.so.11.0", "11.8.89", error=999)
    assert "does not tell" in errors(report)


def test_a_file_is_of_the_wheel_whose_record_has_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "nvidia/lib/libcudart.so.11.0"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    info = tmp_path / "nvidia_cuda_runtime_cu11-11.8.89.dist-info"
    info.mkdir()
    right = "sha256=" + distributions.digest(str(file), "sha256")
    monkeypatch.setattr(distributions, "site_folders", lambda: [str(tmp_path)])
    (info / "RECORD").write_text(f"nvidia/lib/libcudart.so.11.0,{right},1\n")
    assert distributions.version_by_record(str(file.resolve())) == "11.8.89"
    (info / "RECORD").write_text("nvidia/lib/libcudart.so.11.0,sha256=AAAA,1\n")
    assert distributions.version_by_record(str(file.resolve())) is None
    assert distributions.version_by_record("/elsewhere/libcudart.so.11.0") is None


@pytest.mark.parametrize(
    ("how", "loaded", "status"),
    [
        ("loaded", "2.27.3", "pass"),
        ("loaded", "2.30.7", "pass"),
        ("loaded", "2.26.5", "fail"),
        ("loaded", "3.0.1", "fail"),
        ("linked", "2.26.5", "pass"),
    ],
)
def test_a_loaded_nccl_is_not_older_than_compiled_with(how: str, loaded: str, status: str) -> None:
    declared = Declared(cell="c", compiled_nccl="2.27.7", compiled_nccl_how=how)
    assert inspect(declared, Library("nccl", "libnccl.so.2"), found(loaded)).status == status


def test_what_an_image_is_declared_to_lack_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "opener", lambda declared, folders: lambda name, soname: found("12.2"))
    declared = Declared(cell="c", cuda="12.2", libraries=(CUDART,), absent=("libcupti.so.12",))
    report = Report()
    libraries.check(Context(declared), report)
    assert report.status == "pass"
    assert [f["severity"] for f in report.findings] == ["warning"]
    assert "libcupti.so.12" in report.findings[0]["message"]


def test_a_part_of_cudnn_without_a_call_is_exempt_but_not_one_that_does_not_fit() -> None:
    part = Library("cudnn_heuristic", "libcudnn_heuristic.so.9", "9.3.0.75")
    assert inspect(OURS, part, found("")).findings == []
    other = Library("cudnn_ops", "libcudnn_ops.so.9", "9.3.0.75")
    assert "does not tell" in errors(inspect(OURS, other, found("")))


def test_a_part_of_cudnn_is_of_the_locked_wheel() -> None:
    part = Library("cudnn_ops_infer", "libcudnn_ops_infer.so.8", "8.9.7.29", "nvidia-cudnn-cu12")
    report = Report()
    libraries.inspect(OURS, "12.2", [CUDNN, part], report, lambda name, soname: found("8.9.4"))
    assert "nvidia-cudnn-cu12 has 8.9.7.29" in errors(report)
    assert len(report.facts["libraries"]) == 1 + 6


def test_cupti_numbers_its_interface_not_its_release() -> None:
    cupti = Library("cupti", "libcupti.so.12", "12.2.142")
    assert inspect(OURS, cupti, found("20")).findings == []


def test_libraries_follow_from_the_build_information() -> None:
    names = [x.soname for x in libraries.by_build({"cuda_version": "12.2", "cudnn_version": "8"})]
    assert "libcudart.so.12" in names
    assert "libcudnn.so.8" in names
    assert libraries.by_build({}) == ()


def test_probe_reports_file_and_trouble() -> None:
    class Library12:
        pass

    result = probe(
        "cudart",
        "libcudart.so.12",
        load=lambda soname: Library12(),
        maps=lambda: ["/opt/cuda/libcudart.so.12"],
    )
    assert result["path"] == "/opt/cuda/libcudart.so.12"
    assert "cudaRuntimeGetVersion" in result["trouble"]


def test_probe_reports_what_the_loader_says() -> None:
    def load(soname: str) -> Any:
        raise OSError(f"{soname}: cannot open shared object file")

    assert "cannot open" in probe("cudart", "libcudart.so.12", load=load)["missing"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["/a/libcudnn_ops.so.9", "/a/libcudnn.so.9"], "/a/libcudnn.so.9"),
        (["/a/libcudart.so.12.2.140"], "/a/libcudart.so.12.2.140"),
        (["/a/libcupti.so.2023.2.2"], "/a/libcupti.so.2023.2.2"),
        (["/a/libc.so.6"], ""),
    ],
)
def test_mapped_files_are_matched_to_their_soname(files: list[str], expected: str) -> None:
    wanted = "libcupti.so.12" if "cupti" in files[0] else "libcudart.so.12"
    wanted = "libcudnn.so.9" if "cudnn" in files[0] else wanted
    assert mapped_path(wanted, files) == expected


def test_a_real_library_is_opened_in_a_clean_process() -> None:
    result = loader.open_in_clean_process("libc", "libc.so.6")
    assert "libc" in result["path"]
    assert "missing" in loader.open_in_clean_process("no", "libtfenv-no-such.so.1")


def opened_by(
    monkeypatch: pytest.MonkeyPatch, declared: Declared, folders: list[str], library_path: str
) -> list[tuple[str, str]]:
    """File (or soname) and LD_LIBRARY_PATH of what is opened for libcudnn.so.9."""
    asked: list[tuple[str, str]] = []

    def clean(name: str, soname: str, path: str = "") -> dict[str, Any]:
        asked.append((soname, path))
        return found("9.3")

    monkeypatch.setattr(loader, "open_in_clean_process", clean)
    loader.opener(declared, folders, library_path)("cudnn", "libcudnn.so.9")
    return asked


def test_a_foreign_image_is_looked_at_as_tensorflow_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, own = tmp_path / "wheel", tmp_path / "own"
    for folder in (wheel, own):
        folder.mkdir()
    (wheel / "libcudnn.so.9").write_text("")
    foreign, soname, folders = Declared(), "libcudnn.so.9", [str(wheel)]
    file = str(wheel / soname)
    assert opened_by(monkeypatch, foreign, folders, "") == [(file, "")], "TensorFlow's RUNPATH"
    assert opened_by(monkeypatch, foreign, [], str(own)) == [(soname, str(own))]
    assert opened_by(monkeypatch, foreign, folders, str(own)) == [(file, str(own))]
    (own / soname).write_text("")
    assert opened_by(monkeypatch, foreign, folders, str(own)) == [(soname, str(own))]
    assert opened_by(monkeypatch, OURS, folders, str(own)) == [(soname, "")], "ours need no variable"


def test_what_a_build_that_names_no_cuda_was_compiled_for(tmp_path: Path) -> None:
    told = {"cuda_version": "12.2", "cudnn_version": "8"}
    assert libraries.compiled_for(told, []) == told
    info = tmp_path / "tensorflow-2.22.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Name: tensorflow\n"
        "Requires-Dist: nvidia-cuda-runtime-cu12<13.0,>=12.5.82; extra == 'and-cuda'\n"
        "Requires-Dist: nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == 'and-cuda'\n"
    )
    dists = distributions.installed([str(tmp_path)])
    assert libraries.compiled_for({"is_cuda_build": True}, dists) == {
        "is_cuda_build": True,
        "cuda_version": "12.5",
        "cudnn_version": "9.3",
    }
    assert libraries.compiled_for({}, []) == {}
    sonames = [library.soname for library in libraries.by_build(libraries.compiled_for({}, dists))]
    assert "libcudart.so.12" in sonames and "libcudnn.so.9" in sonames
