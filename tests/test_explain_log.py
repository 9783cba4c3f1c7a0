"""``tfenv explain LOG|-``: the command."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tfenv.cli import run

CUDNN = "E cuda_dnn.cc:389] Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0.\n"
NUMA = "successful NUMA node read from SysFS had negative value (-1), but there must be at least one\n"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    class Stdin:
        buffer = io.BytesIO(data)

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr("sys.stdin", Stdin())


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.log").write_text(NUMA + CUDNN)
    assert run(["explain", "train.log"]) == 0
    said = capsys.readouterr().out
    lead, *_ = said.splitlines()
    assert lead == "cause: cuDNN is older than TensorFlow was compiled for"
    assert "line 2: E cuda_dnn.cc:389] Loaded runtime CuDNN library: 8.0.5" in said
    assert "harmless" in said and "known from: https://" in said and "certain" in said


def test_what_is_piped_in_as_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, CUDNN.encode())
    assert run(["explain", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["code"] == "cudnn-minor-too-old" and told["layer"] == "libraries"
    assert told["causes"][0]["evidence"] == [{"line": 1, "text": CUDNN.strip(), "times": 1}]


def test_no_rule_fits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pipe(monkeypatch, b"Error: the moon is in the seventh house\n")
    assert run(["explain", "-"]) == 3
    said = capsys.readouterr().out
    assert said.startswith("no rule fits") and "seventh house" in said


def test_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pipe(monkeypatch, NUMA.encode())
    assert run(["explain", "-"]) == 0
    assert capsys.readouterr().out.startswith("nothing is wrong in this text")


def test_nothing_was_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"")
    assert run(["explain", "-"]) == 3


def test_harmless_lines_beside_an_unknown_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, NUMA.encode() + b"FlurbError: no\n")
    assert run(["explain", "-"]) == 3
    said = capsys.readouterr().out
    assert said.startswith("no rule fits") and "FlurbError" in said and "harmless-numa" in said


def test_options_say_what_the_text_leaves_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, b"Cannot dlopen some GPU libraries.\nii libcudnn8 8.9.6.50-1+cuda12.2 amd64\n")
    assert run(["explain", "-", "--tf", "2.19"]) == 0
    assert "libcudnn.so.9" in capsys.readouterr().out


def test_cells_that_run_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(
        monkeypatch,
        b"requirement error: unsatisfied condition: cuda>=12.4\n"
        b"| NVIDIA-SMI 470.82.01   Driver Version: 470.82.01   CUDA Version: 11.4 |\n",
    )
    assert run(["explain", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"]


def test_a_dockerfile_is_seen_to_be_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, b"FROM python:3.12-alpine\nRUN pip install tensorflow==2.18.0\n")
    assert run(["explain", "-", "--json"]) == 1
    assert "musl-base" in capsys.readouterr().out


def test_requirements_are_seen_to_be_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "requirements.txt").write_text("tensorflow==2.10.1\nnumpy==2.0.0\n")
    assert run(["explain", "requirements.txt", "--json"]) == 1
    assert "numpy2-with-numpy1-abi-tf" in capsys.readouterr().out


def test_a_cell_comes_before_a_file_of_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "2.15").write_text(CUDNN)
    assert run(["explain", "2.15"]) == 0
    assert "cuDNN is older" not in capsys.readouterr().out


def test_neither_a_cell_nor_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "no-such.log"]) == 2
    assert "no-such.log" in capsys.readouterr().err


def test_nothing_drives_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, b"\x1b]0;owned\x07CUDA_VISIBLE_DEVICES=\x1b[2Jgpu\x9b31m0\xff\n")
    assert run(["explain", "-"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\x07" not in said and "\x9b" not in said


def test_a_log_of_powershell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pipe(monkeypatch, CUDNN.encode("utf-16"))
    assert run(["explain", "-"]) == 0
    assert "cudnn-minor-too-old" in capsys.readouterr().out


def test_what_the_facts_say_of_release_and_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, b"tensorflow 2.15.1\nname: NVIDIA GeForce RTX 5090, pci bus id: 1\nFlurbError: no\n")
    assert run(["explain", "-", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["outcome"] == "refuse" and told["causes"] == []
    assert told["facts"]["outcome"] == "refused" and told["code"] == told["facts"]["findings"][0]["code"]


def test_the_facts_are_silent_where_they_see_no_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, b"tensorflow 2.15.1\nname: Tesla T4, pci bus id: 1\nFlurbError: no\n")
    assert run(["explain", "-", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["facts"] is None


def test_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pipe(
        monkeypatch,
        b"<missing> 2 weeks ago ARG PIP_INDEX_URL=https://ada:s3cret@index.example/simple\n"
        b"FlurbError: HF_TOKEN=hf_abcdef went wrong\n",
    )
    assert run(["explain", "-"]) == 0
    said = capsys.readouterr().out
    assert "secret-in-history" in said and "s3cret" not in said and "hf_abcdef" not in said


def test_a_dockerfile_with_a_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, b"ARG PIP_INDEX_URL=https://ada:s3cret@index.example/simple\n")
    assert run(["explain", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["code"] == "secret-in-history"


def test_what_a_shell_substitutes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import os
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.write_text(CUDNN), daemon=True).start()
    assert run(["explain", str(pipe)]) == 0
    assert "cudnn-minor-too-old" in capsys.readouterr().out


def test_a_folder_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(tmp_path)]) == 2
    assert "a file that is there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("gpu", "code"), [("NVIDIA GH200 480GB", "aarch64-wheel-no-cuda"), ("NVIDIA H200", "jit-at-first-use")]
)
@pytest.mark.parametrize("found", [False, True])
def test_a_gpu_of_an_arm_host_that_tensorflow_has_found_is_another_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], gpu: str, code: str, found: bool
) -> None:
    seen = f"Created device /GPU:0 -> device: 0, name: {gpu}, pci bus id: 1, compute capability: 9.0\n"
    listed = f"GPU 0: {gpu} (UUID: GPU-12)\nstrange\n"
    pipe(monkeypatch, f"Collecting tensorflow==2.17.0\n{seen if found else listed}".encode())
    run(["explain", "-", "--json"])
    facts = json.loads(capsys.readouterr().out)["facts"]
    codes = [one["code"] for one in facts["findings"]] if facts else []
    assert (code in codes) is not (found and "GH200" in gpu)
