from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tfenv_verify.declared import Declared, load, parse
from tfenv_verify.protocol import UsageError

FULL: dict[str, Any] = {
    "format": 1,
    "cell": "2.15.1-cu12.2-cudnn8.9-py3.11-debian12",
    "image": "sha256:0",
    "tensorflow": "2.15.1",
    "python": "3.11",
    "cuda": "12.2",
    "cudnn": "8.9",
    "compiled": {"cuda": "12.2", "cudnn": "8.9.4", "nccl": {"version": "2.16.5", "how": "linked"}},
    "libraries": [
        {
            "name": "cudart",
            "soname": "libcudart.so.12",
            "version": "12.2.140",
            "wheel": "nvidia-cuda-runtime-cu12",
            "why": "opened",
        },
        {"name": "x", "soname": "libx.so.1", "version": None},
    ],
    "env": {"NVIDIA_VISIBLE_DEVICES": "all"},
    "cuda_from": "wheels",
    "cuda_folders": ["/opt/tfenv/cuda"],
    "unused": [{"what": "/usr/local/cuda-*/libcudart.so*", "why": "the image's own"}],
    "absent": [{"what": "libcupti.so.11.2", "why": "nothing brings it"}],
    "ptxas": "12.2.140",
    "record": {"exact": True},
    "keep": [{"what": "cffi/*.h", "why": "cffi compiles at run time"}],
    "something_new": 1,
}


def test_everything_is_read() -> None:
    declared = parse(FULL)
    assert declared.cell == FULL["cell"]
    assert (declared.compiled_cuda, declared.compiled_cudnn) == ("12.2", "8.9.4")
    assert (declared.compiled_nccl, declared.compiled_nccl_how) == ("2.16.5", "linked")
    assert declared.cuda_folders == ("/opt/tfenv/cuda",)
    assert declared.unused == ("/usr/local/cuda-*/libcudart.so*",)
    assert (declared.absent, declared.ptxas) == (("libcupti.so.11.2",), "12.2.140")
    assert declared.libraries[0].version == "12.2.140"
    assert declared.libraries[1].version == ""
    assert declared.env == {"NVIDIA_VISIBLE_DEVICES": "all"}
    assert declared.record_exact
    assert declared.keep == ("cffi/*.h",)
    assert not declared.foreign


def test_nothing_declared_is_a_foreign_image(tmp_path: Path) -> None:
    empty = tmp_path / "declared.json"
    empty.write_text("{}")
    assert load("") == load(str(empty)) == Declared()
    assert Declared().foreign


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ([], "object"),
        ({"format": 2}, "format"),
        ({"cell": 5}, "cell"),
        ({"libraries": {}}, "libraries"),
        ({"libraries": [{"name": "cudart"}]}, "soname"),
        ({"compiled": "12.2"}, "compiled"),
        ({"env": []}, "env"),
        ({"cuda_folders": "/opt"}, "cuda_folders"),
        ({"cuda_folders": [""]}, "cuda_folders"),
    ],
)
def test_wrong_types_are_refused_with_the_key(data: Any, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        parse(data)


def test_unreadable_files_are_refused_with_their_name(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(FULL)[:-1])
    for path in (broken, tmp_path / "absent.json"):
        with pytest.raises(UsageError, match=path.name):
            load(str(path))
