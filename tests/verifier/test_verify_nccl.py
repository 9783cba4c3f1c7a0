from __future__ import annotations

from pathlib import Path

import pytest
from tfenv_verify.checks import nccl
from tfenv_verify.declared import Declared, Library
from tfenv_verify.places import tensorflow_libraries
from tfenv_verify.protocol import Report

LINKED = Declared(cell="c", compiled_nccl="2.16.5", compiled_nccl_how="linked")
LOADED = Declared(
    cell="c",
    compiled_nccl="2.25.1",
    compiled_nccl_how="loaded",
    libraries=(Library("nccl", "libnccl.so.2"),),
)
WITHOUT = Declared(cell="c", compiled_nccl="2.25.1", compiled_nccl_how="loaded")
UNSAID = Declared(cell="c", compiled_nccl="2.16.5")


def wheel(folder: Path, text: bytes) -> list[str]:
    (folder / "tensorflow").mkdir()
    (folder / "tensorflow/libtensorflow_cc.so.2").write_bytes(b"\x7fELF" + bytes(5000) + text + bytes(10))
    (folder / "tensorflow/libtensorflow_framework.so.2").write_bytes(b"\x7fELF")
    return tensorflow_libraries([str(folder)])


def test_the_version_is_read_out_of_tensorflows_files(tmp_path: Path) -> None:
    report = Report()
    files = wheel(tmp_path, b"NCCL version 2.16.5+cudaCUDA_MAJOR.CUDA_MINOR\0")
    nccl.inspect(LINKED, files, report)
    assert report.findings == []
    assert list(report.facts["files"].values()) == [["2.16.5"], []]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"NCCL version 2.18.3+cuda12.2\0", "2.18.3; 2.16.5 is declared"),
        (b"NCCL version 2.16.51\0", "2.16.51; 2.16.5 is declared"),
        (b"NCCL version %d.%d\0", "none; 2.16.5 is declared"),
        (b"NCCL version 2.16.5\0 NCCL version 2.18.3\0", "2.16.5 and 2.18.3; 2.16.5 is declared"),
    ],
)
def test_another_or_no_linked_nccl_fails(tmp_path: Path, text: bytes, words: str) -> None:
    report = Report()
    nccl.inspect(LINKED, wheel(tmp_path, text), report)
    assert words in report.findings[0]["message"] and report.status == "fail"


def test_no_file_to_read_fails(tmp_path: Path) -> None:
    report = Report()
    nccl.inspect(LINKED, tensorflow_libraries([str(tmp_path)]), report)
    assert report.status == "fail"


@pytest.mark.parametrize(
    ("declared", "linked", "status"),
    [
        (LOADED, [], "pass"),
        (LOADED, ["2.25.1"], "fail"),
        (WITHOUT, [], "fail"),
        (UNSAID, ["2.16.5"], "fail"),
        (Declared(cell="c"), ["2.16.5"], "fail"),
        (Declared(cell="c", compiled_nccl_how="linked"), ["2.16.5"], "fail"),
        (Declared(), ["2.16.5"], "pass"),
        (Declared(), [], "pass"),
    ],
)
def test_how_it_is_declared(declared: Declared, linked: list[str], status: str) -> None:
    report = Report()
    nccl.judge(declared, linked, report)
    assert report.status == status
