"""tfenv explain: what it says, in words and as data, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from compat_facts import KNOWN
from tfenv import cli
from tfenv.compat.model import Query
from tfenv.explaining import answer, in_words
from tfenv.model import Base, Cell, CudaSet, Matrix, Row

Told = tuple[int, str, str]
Tell = Callable[..., Told]

DEBIAN = Base(name="debian12", kind="debian", suite="bookworm")
UBUNTU = Base(name="ubuntu22.04", kind="nvidia")


def _cells(tensorflow: str, cuda: str, cudnn: str, pythons: str, *bases: Base) -> list[Cell]:
    row = Row(
        tensorflow=tensorflow,
        pythons=tuple(pythons.split()),
        bases=tuple(base.name for base in bases),
        default_base="debian12",
        default_python=pythons.split()[-1],
        exclude_newer="2024-01-01T00:00:00Z",
        requirements=(f"tensorflow=={tensorflow}",),
    )
    libraries = CudaSet(cuda=cuda, cudnn=cudnn, epoch=0)
    return [
        Cell(row=row, python=python, base=base, cuda_set=libraries, cuda_from="wheels")
        for python in row.pythons
        for base in bases
    ]


def _matrix() -> Matrix:
    cells = [
        *_cells("2.14.1", "11.8", "8.6", "3.9 3.10", DEBIAN),
        *_cells("2.15.1", "12.2", "8.9", "3.10 3.11", DEBIAN, UBUNTU),
        *_cells("2.18.1", "12.5", "9.3", "3.11 3.12", DEBIAN),
        *_cells("2.21.0", "12.9", "9.10", "3.12 3.13", DEBIAN),
        *_cells("2.22.0rc0", "12.9", "9.10", "3.13", DEBIAN),
    ]
    refused = (
        (
            "2.14.1-cu11.8-cudnn8.6-py3.11-debian12",
            "a pin of the resolver's choice has no wheel for Python 3.11",
        ),
        ("2.15.1-cu12.2-cudnn8.9-py3.9-ubuntu22.04", "no provider brings that Python"),
    )
    rows = tuple(dict.fromkeys(cell.row for cell in cells))
    return Matrix(repository="tfenv", cells=tuple(cells), refused=refused, bases=(DEBIAN, UBUNTU), rows=rows)


MATRIX = _matrix()


# --- the decision ----------------------------------------------------------------------------------------


def test_a_refused_combination_is_told_with_the_matrix_own_reason_and_the_nearest_cells() -> None:
    told = answer(Query(tensorflow="2.14", python="3.11"), KNOWN, MATRIX)
    assert told.verdict.outcome == "refused"
    assert "a pin of the resolver's choice" in told.verdict.sentences[0]
    assert told.nearest[:2] == (
        "2.14.1-cu11.8-cudnn8.6-py3.10-debian12",
        "2.15.1-cu12.2-cudnn8.9-py3.11-debian12",
    )


def test_a_cell_that_is_meant_is_judged_with_its_own_libraries() -> None:
    told = answer(Query(tensorflow="2.21", gpus=("RTX 5090",), driver="580.65.06"), KNOWN, MATRIX)
    assert told.cell == "2.21.0-cu12.9-cudnn9.10-py3.13-debian12"
    assert told.verdict.outcome == "limit"
    assert told.nearest == ()
    assert "CUDA 12.9" in told.asked


@pytest.mark.parametrize(
    ("query", "cell"),
    [
        (Query(tensorflow="2.15"), "2.15.1-cu12.2-cudnn8.9-py3.11-debian12"),
        (Query(tensorflow="2.15", base="ubuntu22.04"), "2.15.1-cu12.2-cudnn8.9-py3.11-ubuntu22.04"),
        (Query(tensorflow="2.15", python="3.10"), "2.15.1-cu12.2-cudnn8.9-py3.10-debian12"),
        (Query(tensorflow="2.15", cuda="12"), "2.15.1-cu12.2-cudnn8.9-py3.11-debian12"),
        (Query(tensorflow="2.15", cuda="12.3"), ""),
        (Query(tensorflow="2.15", cuda_source="pip"), ""),
        (Query(tensorflow="2.15", base="nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04"), ""),
        (Query(tensorflow="2.22"), ""),
        (Query(tensorflow="2.15.0"), ""),
        (Query(tensorflow="2.22.0rc0"), "2.22.0rc0-cu12.9-cudnn9.10-py3.13-debian12"),
        (Query(python="3.11"), ""),
    ],
)
def test_which_cell_is_meant(query: Query, cell: str) -> None:
    assert answer(query, KNOWN, MATRIX).cell == cell


def test_the_nearest_cells_run_on_the_gpu_that_was_named() -> None:
    told = answer(Query(tensorflow="2.18", gpus=("RTX 5090",)), KNOWN, MATRIX)
    assert told.verdict.outcome == "refused"
    assert told.nearest
    assert all(name.startswith(("2.21.0", "2.22.0rc0")) for name in told.nearest)


def test_with_a_gpu_alone_the_best_cell_of_each_release_is_told() -> None:
    told = answer(Query(gpus=("RTX 5090",), driver="570.124.06"), KNOWN, MATRIX)
    assert [(choice.tag, choice.cell) for choice in told.choices] == [
        ("2.22.0rc0", "2.22.0rc0-cu12.9-cudnn9.10-py3.13-debian12"),
        ("2.21", "2.21.0-cu12.9-cudnn9.10-py3.13-debian12"),
    ]
    assert all("jit-at-first-use" in choice.limits for choice in told.choices)
    assert told.again == "tfenv explain 2.22.0rc0 --gpu 'RTX 5090' --driver 570.124.06"


def test_a_python_alone_chooses_too() -> None:
    told = answer(Query(python="3.10"), KNOWN, MATRIX)
    assert [choice.tag for choice in told.choices] == ["2.15-py3.10", "2.14"]
    assert told.again == ""


def test_what_no_cell_runs_with_is_refused() -> None:
    told = answer(Query(python="3.14", gpus=("T4",)), KNOWN, MATRIX)
    assert (told.verdict.outcome, told.choices) == ("refused", ())
    assert told.verdict.findings[0].code == "no-cell"
    assert told.verdict.findings[0].remedy.endswith("tfenv explain latest --gpu T4 --python 3.14")
    dropped = answer(Query(gpus=("V100",), driver="590.44.01"), KNOWN, MATRIX)
    assert [finding.code for finding in dropped.verdict.findings] == ["driver-drops-gpu"]


def test_nearest_cells_that_want_another_driver_are_told_as_such() -> None:
    told = answer(Query(tensorflow="2.18", gpus=("RTX 5090",), driver="535.104"), KNOWN, MATRIX)
    assert told.other_driver
    assert all(name.startswith(("2.21.0", "2.22.0rc0")) for name in told.nearest)
    same = answer(Query(tensorflow="2.18", gpus=("RTX 5090",), driver="570.124.06"), KNOWN, MATRIX)
    assert same.nearest and not same.other_driver


def test_an_image_of_tensorflow_names_the_release() -> None:
    told = answer(Query(base="tensorflow/tensorflow:2.15.0-gpu"), KNOWN, MATRIX)
    assert told.asked.startswith("TensorFlow 2.15.0, on ")
    assert told.nearest[0].startswith("2.15.1")
    assert answer(Query(base="tensorflow/tensorflow:latest-gpu"), KNOWN, MATRIX).nearest == ()


def test_a_base_of_the_matrix_is_no_image() -> None:
    told = answer(Query(tensorflow="2.15", python="3.9", base="ubuntu22.04"), KNOWN, MATRIX)
    assert [finding.code for finding in told.verdict.findings if finding.severity == "refuse"] == [
        "matrix-refused"
    ]
    other = answer(Query(tensorflow="2.15", python="3.9", base="python:3.9"), KNOWN, MATRIX)
    assert other.verdict.outcome == "limit"
    assert "matrix-refused" not in [finding.code for finding in other.verdict.findings]


def test_without_a_matrix_the_combination_is_judged_all_the_same() -> None:
    told = answer(Query(tensorflow="2.15", python="3.12"), KNOWN)
    assert (told.verdict.outcome, told.nearest) == ("refused", ())


def test_a_question_in_words() -> None:
    asked = Query(tensorflow="2.18", cuda="12.2", gpus=("A", "B"), driver="535.104")
    assert in_words(asked) == "TensorFlow 2.18, CUDA 12.2, A and B, driver 535.104"
    assert in_words(Query()) == "nothing that is known"


# --- the command -----------------------------------------------------------------------------------------


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tell:
    monkeypatch.setattr("tfenv.compat.table.known", lambda: KNOWN)
    bare = SimpleNamespace(matrix=MATRIX, folder=lambda cell: Path(cell.name), find_lock=lambda _cell: None)
    monkeypatch.setattr("tfenv.commands.explain._workspace", lambda _console: bare)

    def run(*arguments: str) -> Told:
        code = cli.run(["explain", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_why_not(tell: Tell) -> None:
    code, out, _ = tell("2.14", "--python", "3.11")
    assert code == 1
    assert "TensorFlow 2.14, Python 3.11: refused" in out
    assert "nearest cells: 2.14.1-cu11.8-cudnn8.6-py3.10-debian12" in out


def test_which_cell_for_a_gpu(tell: Tell) -> None:
    out = tell("--gpu", "RTX 5090")[1]
    assert "  2.21       2.21.0-cu12.9-cudnn9.10-py3.13-debian12  (jit-at-first-use, " in out
    assert "what these limits mean: tfenv explain 2.22.0rc0 --gpu 'RTX 5090'\n" in out


def test_a_driver_that_is_no_version_gets_an_example_of_one(tell: Tell) -> None:
    assert "535.104.05" in tell("2.15", "--driver", "new")[2]


def test_a_dockerfile_without_tensorflow_is_not_said_to_run(tell: Tell, tmp_path: Path) -> None:
    code, out, _ = tell("--dockerfile", _file(tmp_path, "FROM debian:12\nRUN true\n"))
    assert code == 0
    assert "no TensorFlow is named, so there is nothing to judge" in out
    code, out, _ = tell("--dockerfile", _file(tmp_path, "FROM tensorflow/tensorflow:2.15.0-gpu\n"))
    assert (code, "TensorFlow 2.15.0" in out) == (3, True)


def test_a_free_combination(tell: Tell) -> None:
    code, out, _ = tell("--tf", "2.18", "--cuda", "12.2", "--gpu", "RTX 5090", "--driver", "535.104")
    assert code == 1
    assert "compiled for CUDA 12.5.1" in out
    assert "sm_120" in out
    assert "570.26" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("2.15",), 0),
        (("tfenv:2.15-cu12-py3.11",), 0),
        (("2.15.1-cu12.2-cudnn8.9-py3.11-debian12", "--gpu", "V100", "--driver", "580.65.06"), 0),
        (("2.15", "--gpu", "H100"), 0),  # with limits
        (("--gpu", "RTX 5090"), 0),
        (("--python", "3.15"), 1),
        (("--gpu", "Banana 9"), 3),
        (("latest", "--gpu", "A100"), 0),
        (("2.15", "--gpu", "V100", "--driver", "590.44.01"), 1),
        (("2.30",), 1),
        (("2.22.0rc0",), 0),
        (("--tf", "2.22.0rc0", "--cuda", "12.8"), 1),
        (("--tf", "2.22.0rc0", "--cuda", "12.8", "--pre"), 0),
        (("2.15", "--gpu", "RTX 6000"), 3),
        (("2.15", "--gpu", "Banana 9"), 3),
        (("--tf", "2.15", "--base", "team/own:1", "--cuda-source", "base"), 3),
        ((), 2),
        (("some.log",), 2),
        (("2.15", "--tf", "2.16"), 2),
        (("2.15", "--driver", "new"), 2),
        (("--tf", "two"), 2),
        (("--requirements", "/nowhere"), 2),
    ],
)
def test_exit_codes(tell: Tell, arguments: tuple[str, ...], code: int) -> None:
    assert tell(*arguments)[0] == code


def test_what_is_unknown_is_said_to_be(tell: Tell) -> None:
    code, out, _ = tell("2.15", "--gpu", "RTX 6000", "--json")
    told = json.loads(out)
    assert (code, told["outcome"], told["gravest"]) == (3, "unknown", "unknown")
    assert "RTX 6000 Ada" in told["findings"][0]["message"]


def test_as_data(tell: Tell) -> None:
    told = json.loads(tell("2.15", "--gpu", "H100", "--json")[1])
    assert told["outcome"] == "limit"
    assert {finding["code"] for finding in told["findings"]} == {"jit-at-first-use", "nccl-without-code"}
    assert set(told["findings"][0]) == {"code", "severity", "message", "remedy", "source", "line"}


def _file(folder: Path, text: str) -> str:
    path = folder / "file"
    path.write_text(text)
    return str(path)


def test_a_dockerfile(tell: Tell, tmp_path: Path) -> None:
    text = "FROM python:3.11-slim\nRUN pip install 'tensorflow[and-cuda]==2.17.1'\n"
    code, out, _ = tell("--dockerfile", _file(tmp_path, text))
    assert code == 0
    assert "and should be changed" in out
    assert "line 1: python:3.11-slim does not set NVIDIA_VISIBLE_DEVICES" in out
    assert tell("--dockerfile", _file(tmp_path, text), "--strict")[0] == 1
    musl = text.replace("3.11-slim", "3.12-alpine")
    assert tell("--dockerfile", _file(tmp_path, musl))[0] == 1


def test_a_dockerfile_for_a_gpu(tell: Tell, tmp_path: Path) -> None:
    text = "FROM nvidia/cuda:12.6.3-cudnn-runtime-ubuntu22.04\nRUN pip install tensorflow==2.18.1\n"
    code, out, _ = tell("--dockerfile", _file(tmp_path, text), "--gpu", "RTX 5090")
    assert code == 1
    assert "line 2: the TensorFlow 2.18.1 wheel has no machine code for sm_120" in out


def test_a_requirement_list(tell: Tell, tmp_path: Path) -> None:
    code, out, _ = tell("--requirements", _file(tmp_path, "tensorflow==2.10.1\nnumpy==2.0.0\n"))
    assert code == 1
    assert "-> numpy<2" in out
    assert tell("--requirements", _file(tmp_path, "tensorflow==2.10.1\nnumpy==1.26.4\n"))[0] == 0
    assert tell("--requirements", _file(tmp_path, "requests==2.0\n"))[0] == 3


def test_a_list_of_cells_gives_an_answer_for_each(tell: Tell, tmp_path: Path) -> None:
    text = "cells:\n  - {tensorflow: 2.15.1, python: 3.11}\n  - {tensorflow: 2.15.1, python: 3.12}\n"
    code, out, _ = tell("--matrix", _file(tmp_path, text), "--json")
    told: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert (code, [one["outcome"] for one in told]) == (1, ["runs", "refused"])
    assert tell("--matrix", _file(tmp_path, "nothing"))[0] == 2


def test_one_file_at_a_time(tell: Tell, tmp_path: Path) -> None:
    name = _file(tmp_path, "x")
    code, _, err = tell("--matrix", name, "--dockerfile", name)
    assert code == 2
    assert "one of --requirements" in err


def test_outside_of_any_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFENV_MATRIX", str(tmp_path / "none.yaml"))
    assert cli.run(["explain", "--tf", "2.15.1", "--python", "3.12"]) == 1
    assert "no cells are named" in capsys.readouterr().err


def test_of_equally_near_cells_the_newest_patch_release_comes_first() -> None:
    older = _cells("2.15.0", "12.2", "8.9", "3.10 3.11", DEBIAN)
    matrix = replace(MATRIX, cells=(*older, *MATRIX.cells))
    told = answer(Query(tensorflow="2.15", cuda="12.1"), KNOWN, matrix)
    assert [name.split("-")[0] for name in told.nearest] == ["2.15.1", "2.15.1", "2.15.0", "2.15.0"]
    assert told.nearest[0].endswith("py3.11-debian12")
