from __future__ import annotations

import os
from pathlib import Path

from tfenv_verify.checks import second_cuda
from tfenv_verify.declared import Declared, Library
from tfenv_verify.protocol import Report


def library(path: Path, content: str = "x") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return str(path)


def compare(*paths: str) -> Report:
    report = Report()
    second_cuda.compare(paths, report)
    return report


def test_one_place_passes_however_many_links_lead_to_it(tmp_path: Path) -> None:
    real = library(tmp_path / "nvidia/cuda_runtime/lib/libcudart.so.12.2.140")
    link = tmp_path / "usr/local/cuda/lib64/libcudart.so.12"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    folder = tmp_path / "linked"
    folder.symlink_to(tmp_path / "nvidia/cuda_runtime/lib")
    hard = tmp_path / "libcudart.so"
    os.link(real, hard)
    report = compare(real, str(link), str(folder / "libcudart.so.12.2.140"), str(hard))
    assert report.status == "pass"
    assert len(report.facts["families"]["cudart"]) == 1


def test_two_places_fail_and_are_both_named(tmp_path: Path) -> None:
    wheel = library(tmp_path / "nvidia/cublas/lib/libcublas.so.12", "xx")
    base = library(tmp_path / "usr/local/cuda-12.2/lib64/libcublas.so.12.2.5.6")
    report = compare(wheel, base)
    assert report.status == "fail"
    assert wheel in report.findings[0]["message"]
    assert base in report.findings[0]["message"]
    assert report.facts["wasted_bytes"] == 1


def test_two_major_versions_are_two_cudas(tmp_path: Path) -> None:
    report = compare(library(tmp_path / "a/libcudnn.so.8"), library(tmp_path / "b/libcudnn.so.9"))
    assert report.status == "fail"


def test_similar_names_are_other_families(tmp_path: Path) -> None:
    names: tuple[str, ...] = (
        "libcublas.so.12",
        "libcublasLt.so.12",
        "libcudnn.so.8",
        "libcudnn_ops_infer.so.8",
    )
    names += ("libcuda.so.1", "libnvrtc-builtins.so.12.2", "libnvrtc.so.12", "libcusolverMg.so.11")
    assert compare(*(library(tmp_path / name) for name in names)).status == "pass"


def declared_with(tmp_path: Path, **more: tuple[str, ...]) -> Declared:
    folders = more.pop("cuda_folders", (str(tmp_path / "opt"),))
    library = Library("cudart", "libcudart.so.12")
    return Declared(cell="c", libraries=(library,), cuda_folders=folders, **more)  # type: ignore[arg-type]


def test_a_library_outside_of_the_declared_folders_is_a_second_cuda(tmp_path: Path) -> None:
    inside, out = library(tmp_path / "opt/libcudart.so.12"), library(tmp_path / "usr/libnccl.so.2")
    report = Report()
    second_cuda.compare([inside, out], report, declared_with(tmp_path))
    assert report.status == "fail" and report.findings[0]["evidence"] == out
    fine = Report()
    folders = (str(tmp_path / "opt"), str(tmp_path / "usr"))
    second_cuda.compare([inside, out], fine, declared_with(tmp_path, cuda_folders=folders))
    assert fine.status == "pass"


def test_a_folder_that_only_begins_like_a_declared_one_is_another(tmp_path: Path) -> None:
    report = Report()
    second_cuda.compare([library(tmp_path / "opt-2/libnccl.so.2")], report, declared_with(tmp_path))
    assert report.status == "fail"


def test_the_images_own_runtime_may_stay_where_the_loader_takes_the_wheels(tmp_path: Path) -> None:
    wheel = library(tmp_path / "opt/libcudart.so.12")
    base = library(tmp_path / "cuda-12.3/lib/libcudart.so.12.3.101")
    declared = declared_with(tmp_path, unused=(str(tmp_path / "cuda-*/libcudart.so*"),))
    report = Report()
    second_cuda.compare([wheel, base], report, declared, lambda name, soname: {"path": wheel})
    assert report.status == "pass"
    assert report.facts["unused"] == [base]
    for answer in ({"path": base}, {"missing": "no such file"}):
        wrong, given = Report(), dict(answer)
        second_cuda.compare([wheel, base], wrong, declared, lambda name, soname: given)  # noqa: B023
        assert wrong.status == "fail"
        assert "is declared as unused" in wrong.findings[0]["message"]


def test_only_what_is_declared_as_unused_may_stay(tmp_path: Path) -> None:
    wheel = library(tmp_path / "opt/libcudart.so.12")
    base = library(tmp_path / "cuda-12.3/lib/libcudart.so.12.3.101")
    report = Report()
    second_cuda.compare([wheel, base], report, declared_with(tmp_path), lambda n, s: {"path": wheel})
    assert report.status == "fail"


def test_the_loaders_list_is_read() -> None:
    listing = (
        "2 libs found in cache `/etc/ld.so.cache'\n"
        "\tlibcudart.so.12 (libc6,x86-64) => /opt/cuda/lib/libcudart.so.12\n"
        "\tlibc.so.6 (libc6,x86-64, OS ABI: Linux 3.2.0) => /lib/libc.so.6\n"
    )
    assert second_cuda.listed_by_loader(lambda: listing) == [
        "/opt/cuda/lib/libcudart.so.12",
        "/lib/libc.so.6",
    ]


def test_toolkits_are_searched_without_their_stubs(tmp_path: Path) -> None:
    library(tmp_path / "cuda-12.2/targets/x86_64-linux/lib/libcublas.so.12")
    library(tmp_path / "cuda-12.2/targets/x86_64-linux/lib/stubs/libcublas.so")
    folders = second_cuda.toolkit_folders([str(tmp_path / "cuda*")])
    found = second_cuda.in_folders(folders)
    assert [Path(path).name for path in found] == ["libcublas.so.12"]
