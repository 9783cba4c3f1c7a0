"""Dockerfiles are read as far as linting needs, and every rule has an example and a look-alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tfenv.compat.model import Finding
from tfenv.compat.table import RULES
from tfenv.lint import DOCKERFILE_RULES, lint_dockerfile
from tfenv.lint.dockerfile import parse
from tfenv.lint.installs import pips
from tfenv.lint.question import line_of

FIXTURES = Path(__file__).parent / "fixtures"
VARIATIONS: list[dict[str, Any]] = YAML(typ="safe").load(FIXTURES / "case_variations.yaml")
#: Examples and look-alikes of the rules that no case is about; those of the others are in the fixture.
MORE = {
    "floating-stage": (
        ["FROM node:latest AS web\nRUN make\nFROM python:3.11\nCOPY --from=web /x /x"],
        ["FROM node:22 AS web\nFROM python:3.11", "FROM scratch AS x\nFROM python:3.11"],
    ),
    "library-renamed": (
        ["FROM x:1\nRUN ln -s /cuda/libcusolver.so.11 /cuda/libcusolver.so.10"],
        [
            "FROM x:1\nRUN ln -s libcusolver.so.11.4.1 libcusolver.so.11",
            "FROM x:1\nRUN ln -s liba.so.1 liba.so",
        ],
    ),
}


def _codes(text: str) -> set[str]:
    return {finding.code for finding in lint_dockerfile(text)[1]}


def test_every_rule_has_an_example_and_a_look_alike() -> None:
    of_cases = {row["code"] for row in VARIATIONS if row["kind"] == "dockerfile"}
    of_questions = {rule.code for rule in RULES}
    assert (of_cases - of_questions) | set(MORE) == {rule.code for rule in DOCKERFILE_RULES}
    assert all(found and silent for found, silent in MORE.values())


@pytest.mark.parametrize(("code", "text"), [(code, text) for code in MORE for text in MORE[code][0]])
def test_found(code: str, text: str) -> None:
    assert code in _codes(text)


@pytest.mark.parametrize(("code", "text"), [(code, text) for code in MORE for text in MORE[code][1]])
def test_not_found(code: str, text: str) -> None:
    assert code not in _codes(text)


def test_a_rule_gives_its_own_code_alone() -> None:
    texts = [
        text
        for row in VARIATIONS
        if row["kind"] == "dockerfile"
        for text in row["found"] + row["look_alikes"]
    ]
    for text in texts:
        assert _codes(text) <= {rule.code for rule in DOCKERFILE_RULES}


def test_findings_name_the_line() -> None:
    text = "# a comment\nFROM python:3.11\n\nRUN true && \\\n  # why\n  pip install torch\n"
    [found] = lint_dockerfile(text)[1]
    assert (found.code, found.line) == ("unpinned-gpu-package", 4)
    base = Finding(code="musl-base", severity="refuse", message="")
    assert line_of(base, text) == 2
    wheel = Finding(code="release-unknown", severity="refuse", message="")
    assert line_of(wheel, "FROM a:1\nRUN pip install tensorflow==2.15.1") == 2
    assert line_of(wheel, "") == 0


# --- the language ----------------------------------------------------------------------------------------


def test_stages_and_arguments() -> None:
    text = (
        "ARG CUDA=12.2.2\nARG V\nFROM --platform=linux/amd64 nvidia/cuda:${CUDA}-base-ubuntu22.04 AS "
        "base\nENV A=1\n"
        "FROM base\nENV B 2 3\nFROM ${V}\n"
    )
    first, second, third = parse(text)
    assert first.image and second.image
    assert (first.image.cuda, first.platform, first.alias) == ("12.2.2", "linux/amd64", "base")
    assert second.image == first.image
    assert second.env == {"A": "1", "B": "2 3"}
    assert third.image is None


def test_default_of_an_argument() -> None:
    [stage] = parse("FROM python:${V:-3.11}-slim")
    assert stage.image and stage.image.python == "3.11"


def test_commands_are_split_at_operators_and_not_in_quotes() -> None:
    [stage] = parse(
        "FROM a:1\nRUN --mount=type=cache,target=/x X=1 echo 'a && b'; pip install x || true | cat"
    )
    commands = stage.instructions[0].commands
    assert commands == (("echo", "a && b"), ("pip", "install", "x"), ("true",), ("cat",))
    assert stage.instructions[0].mounts == ({"type": "cache", "target": "/x"},)


def test_here_documents() -> None:
    [stage] = parse("FROM a:1\nRUN <<'EOF'\npip install x\n# no\nEOF\nENV A=1\n")
    assert [i.word for i in stage.instructions] == ["RUN", "ENV"]
    assert stage.instructions[0].commands == (("pip", "install", "x"),)


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("pip install a==1 'b[c]>=2'", ("a==1", "b[c]>=2")),
        ("python3 -m pip install --index-url https://i.example a", ("a",)),
        ("pip3.11 --quiet install -r r.txt -c c.txt a", ("a",)),
        ("uv pip install --system a", ("a",)),
        ("/opt/venv/bin/pip install --no-cache-dir a", ("a",)),
        ("sudo pip install a", ("a",)),
        ("pip uninstall a", ()),
        ("pip list", ()),
        ("apt-get install pip", ()),
        ("echo pip install a", ()),
    ],
)
def test_pip(command: str, asked: tuple[str, ...]) -> None:
    [stage] = parse(f"FROM a:1\nRUN {command}")
    assert tuple(text for pip in pips(stage) for text in pip.asked) == asked


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "FROM\n", "RUN 'unclosed\n", "FROM a:1\nRUN \\", "RUN <<EOF\nx"]
)
def test_what_is_broken_is_no_crash(text: str) -> None:
    query, found = lint_dockerfile(text)
    json.dumps([finding.message for finding in found])
    assert query.tensorflow == ""


def test_the_question_of_an_image() -> None:
    query, _ = lint_dockerfile(
        "FROM nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04\nENV TF_USE_LEGACY_KERAS=1\n"
        "RUN apt-get update && apt-get install -y python3.10 python3-pip\nRUN pip install "
        "tensorflow==2.15.1 numpy==1.26.4"
    )
    assert (query.tensorflow, query.python) == ("2.15.1", "3.10")
    assert query.extra == ("tensorflow==2.15.1", "numpy==1.26.4")
    assert dict(query.env) == {"TF_USE_LEGACY_KERAS": "1"}
    assert query.base.startswith("nvidia/cuda:12.2.2")
