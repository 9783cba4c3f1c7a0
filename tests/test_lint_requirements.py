"""Requirement lists and lists of cells become questions."""

from __future__ import annotations

import pytest
from tfenv.compat.model import Query
from tfenv.errors import UsageError
from tfenv.lint import lint_requirements, read_cells
from tfenv.lint.requirements import listed


def test_lines_without_what_is_not_a_requirement() -> None:
    text = (
        "# made by hand\n--index-url https://i.example\n-r other.txt\n\n"
        "numpy==1.26.4 \\\n    --hash=sha256:ab \\\n    --hash=sha256:cd\n"
        "    # via tensorflow\nTensorFlow[and-cuda] == 2.15.1 ; python_version < '3.12'  # why\n./local.whl\n"
    )
    assert listed(text) == ("numpy==1.26.4", "TensorFlow[and-cuda] == 2.15.1 ; python_version < '3.12'")


def test_the_question_of_a_list() -> None:
    query, found = lint_requirements("tensorflow[and-cuda]==2.15.1\nnumpy==1.26.4", python="3.11")
    assert found == ()
    assert query == Query(
        tensorflow="2.15.1",
        python="3.11",
        cuda_source="wheels",
        extra=("tensorflow[and-cuda]==2.15.1", "numpy==1.26.4"),
    )


@pytest.mark.parametrize(
    ("text", "code", "severity"),
    [
        ("tensorflow>=2.15", "tensorflow-not-pinned", "lint"),
        ("tensorflow==2.15.*", "tensorflow-not-pinned", "lint"),
        ("torch==2.1.0", "tensorflow-not-pinned", "unknown"),
        ("", "tensorflow-not-pinned", "unknown"),
    ],
)
def test_a_list_without_a_pinned_tensorflow(text: str, code: str, severity: str) -> None:
    [found] = lint_requirements(text)[1]
    assert (found.code, found.severity) == (code, severity)


def test_tensorflow_gpu_is_a_tensorflow() -> None:
    assert lint_requirements("tensorflow-gpu==2.10.1")[0].tensorflow == "2.10.1"


# --- cells -----------------------------------------------------------------------------------------------


def test_cells() -> None:
    text = (
        "targets: [sm_90, RTX 4090]\ncells:\n"
        "  - tensorflow: 2.15.1\n    python: 3.10\n    base: ubuntu:22.04\n    env: {A: 1}\n    "
        "extra_pip: [x==1]\n"
        "  - {tensorflow: '2.16.2', cuda_from: wheels, env: [B=2=3], mirror: x}\n"
    )
    (first, of_first), (second, of_second) = read_cells(text)
    assert first == Query(
        tensorflow="2.15.1",
        python="3.10",  # and not 3.1
        base="ubuntu:22.04",
        env=(("A", "1"),),
        extra=("x==1",),
        gpus=("sm_90", "RTX 4090"),
    )
    assert of_first == ()
    assert (second.cuda_source, second.env) == ("wheels", (("B", "2=3"),))
    assert [finding.code for finding in of_second] == ["cell-key-unknown"]


@pytest.mark.parametrize("text", ["", "cells: 1", "a: [", "- 1\n- 2", "cells: [a]", "text"])
def test_what_is_no_list_of_cells(text: str) -> None:
    with pytest.raises(UsageError):
        read_cells(text)


def test_a_bare_list_will_do() -> None:
    [(query, _)] = read_cells("- tensorflow: 2.15.1")
    assert query.tensorflow == "2.15.1"
