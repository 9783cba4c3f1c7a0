from __future__ import annotations

import os
from pathlib import Path

from tfenv_verify.checks import second_cuda
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
