"""``tfenv explain``"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfenv.commands import _environments, _pasted
from tfenv.commands._common import emit, json_option

if TYPE_CHECKING:
    from tfenv.compat.model import Finding, Query
    from tfenv.console import Console
    from tfenv.explaining import Answer
    from tfenv.model import Environment, Matrix
    from tfenv.workspace import Workspace

#: Parts of a question that are versions: their name, and how one looks.
_VERSIONS = {
    "tensorflow": ("TensorFlow", "2.18 or 2.18.1"),
    "python": ("Python", "3.11"),
    "cuda": ("CUDA", "12.2"),
    "cudnn": ("cuDNN", "8.9"),
    "driver": ("the driver", "535.104.05, or its branch, 535: nvidia-smi tells it"),
}
_NUMBERS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}")
_RELEASE = re.compile(_NUMBERS.pattern + r"((a|b|rc)[0-9]{1,9})?(\.(post|dev)[0-9]{1,9})*")
_MOST = 1 << 20  # bytes of a file: a list of hundreds of packages with their hashes has fewer
_NAMED = 5  # environments in a message
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("explain")
@click.argument("name", required=False, metavar="[NAME|LOG|-]")
@click.option("--tf", "tensorflow", help="TensorFlow release, e.g. 2.18 or 2.18.1.")
@click.option("--python", help="Python version, e.g. 3.11.")
@click.option("--cuda", help="Version of the CUDA libraries, e.g. 12.2.")
@click.option("--cudnn", help="Version of cuDNN, e.g. 8.9.")
@click.option(
    "--base", help="An image, e.g. nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04, or a base of the matrix."
)
@click.option(
    "--cuda-source", type=click.Choice(["base", "wheels", "pip"]), help="Where CUDA's libraries come from."
)
@click.option("--platform", help="e.g. linux/amd64.")
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    help="A GPU's name or compute capability, e.g. 'RTX 5090' or 12.0; may be repeated.",
)
@click.option("--driver", help="Version of the host's NVIDIA driver, or its branch, e.g. 535.")
@click.option("--pre", is_flag=True, help="A release candidate is meant.")
@click.option(
    "--requirements", "requirements_file", type=_FILE, help="A requirement list, or a resolver's message."
)
@click.option("--dockerfile", "dockerfile", type=_FILE, help="A Dockerfile.")
@click.option(
    "--matrix",
    "cells_file",
    type=_FILE,
    help="A list of cells of others, not tfenv's own: YAML with 'cells:'.",
)
@click.option(
    "--strict", is_flag=True, help="Fail (1) also on what should be changed in a file, though it may run."
)
@json_option
def command(
    name: str | None,
    requirements_file: Path | None,
    dockerfile: Path | None,
    cells_file: Path | None,
    strict: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """Say whether a combination runs and why not, or what is the cause of an error.

    NAME is a cell, or part of its name: 2.14, 2.15-cu12. Any free combination can be asked by options,
    and files of others can be judged. With a GPU, a driver or a Python alone, it lists the cells that run.
    What is not known is said to be unknown.

    NAME is a team's environment: then also what it stands on, what it adds and why, what it needs of a host,
    and what was verified of it.

    NAME is also a file, or - for what is piped in: the output of TensorFlow, NCCL, Docker, a build, pip or
    uv, nvidia-smi or docker info, as it was pasted. Then the cause is told, with the lines that decided and
    what to do; what everybody sees is told apart. Options say what the text leaves out (--driver, --gpu).

    Exit codes: 0 it would run (limits are told), or a cause is known; 1 refused, 2 usage, 3 unknown.
    """
    from tfenv.compat.table import known
    from tfenv.console import Console
    from tfenv.explaining import answer

    console = Console()
    files = [requirements_file, dockerfile, cells_file]
    if sum(file is not None for file in files) > 1:
        raise _usage("more than one file is given", "give one of --requirements, --dockerfile and --matrix")
    sort, content = _content(requirements_file, dockerfile, cells_file)
    asked_name = name
    if _pasted.is_text(name) and not sort:
        from tfenv.knowledge.sorting import sort_of

        text = _pasted.read(name or "", console)
        sort, content = sort_of(text), text
        if sort == "output":
            return _pasted.explain(text, asked, lambda: _matrix(console), as_json=as_json)
        name = None
    workspace = _workspace(console)
    matrix = workspace.matrix if workspace else None
    environment = _environment(name, matrix)
    base = _query(environment.start.name if environment else name, asked, bool(sort), matrix)
    world = known()
    codes = []
    pasted = _pasted.is_text(asked_name) and sort == "dockerfile"
    for query, found in _questions(base, sort, content):
        _check(query)
        told = answer(query, world, matrix, found)
        if sort == "dockerfile":
            told = _with_lines(told, content)
        if pasted and {one.code for one in told.verdict.findings} <= {"dockerfile-empty"}:
            # What is wrong with it, a login for one, may be known to the rules of texts.
            return _pasted.explain(content, asked, lambda: matrix, as_json=as_json)
        data, text = told.as_dict(), _text(told, environment.name if environment else "")
        if environment and workspace and not sort:
            more, lines = _environments.explain(workspace, environment)
            data, text = {**data, "environment": more}, "\n  ".join([text, *lines])
        emit(data, as_json=as_json, text=text)
        codes.append(_code(told, strict=strict))
    return next((code for code in (1, 3) if code in codes), 0)


def _content(requirements: Path | None, dockerfile: Path | None, cells: Path | None) -> tuple[str, str]:
    """What sort the file is that was named, and its text; empty if none was."""
    from tfenv.files import read_text

    for sort, path in (("requirements", requirements), ("dockerfile", dockerfile), ("cells", cells)):
        if path:
            return sort, read_text(path, _MOST)
    return "", ""


def _questions(base: Query, sort: str, content: str) -> Iterator[tuple[Query, tuple[Finding, ...]]]:
    """The question, or the questions that a text asks, each with what is wrong with the text."""
    from tfenv.lint import lint_dockerfile, lint_requirements, read_cells

    if sort == "cells":
        for query, found in read_cells(content):
            yield _merged(query, base), found
    elif sort:
        query, found = (lint_dockerfile if sort == "dockerfile" else lint_requirements)(content)
        yield _merged(query, base), found
    else:
        yield base, ()


def _query(name: str | None, asked: dict[str, Any], from_file: bool, matrix: Matrix | None) -> Query:
    from tfenv.cells import parse_name
    from tfenv.compat.model import Query

    given = {key: value for key, value in asked.items() if value}
    allow = given.pop("pre", False)
    if name:
        bare = name.removeprefix(f"{matrix.repository}:") if matrix else name
        parts = parse_name(bare.removeprefix("tfenv:"))
        if parts is None:
            own = [one.name for one in matrix.environments] if matrix else []
            also = f", an environment ({', '.join(own[:_NAMED])})" if own else ""
            remedy = f"name a cell, e.g. 2.15-cu12{also}, a file that is there, or - for what is piped in"
            raise _usage(f"'{name}' is not the name of a cell, nor part of one", remedy)
        named = {
            "tensorflow": parts.release,
            **{k: getattr(parts, k) for k in ("cuda", "cudnn", "python", "base")},
        }
        twice = [key for key, value in named.items() if value and given.get(key, value) != value]
        if twice:
            raise _usage(f"{', '.join(twice)} is said twice, and differently", "say it once")
        given = {**{key: value for key, value in named.items() if value}, **given}
        if given.get("tensorflow") == "latest":
            given["tensorflow"] = _latest(matrix)
    if not given and not from_file:
        raise _usage(
            "nothing is asked",
            "type e.g.: tfenv explain 2.14 --python 3.11, tfenv explain --gpu 'RTX 5090', "
            "or with the output of what failed: tfenv explain train.log",
        )
    given["gpus"] = tuple(given.get("gpus", ()))
    return Query(**given, allow_prerelease=allow)


def _latest(matrix: Matrix | None) -> str:
    from tfenv.facts import releases
    from tfenv.versions import is_final, order

    there = [cell.row.tensorflow for cell in matrix.cells] if matrix else list(releases())
    return max(filter(is_final, there), key=order, default="")


def _merged(query: Query, given: Query) -> Query:
    """What a file asks, with what was typed beside it."""
    from dataclasses import asdict, replace

    return replace(query, **{key: value for key, value in asdict(given).items() if value})


def _check(query: Query) -> None:
    for what, (name, example) in _VERSIONS.items():
        value = getattr(query, what)
        # The first number of a TensorFlow or a Python alone says nothing.
        alone = what in ("tensorflow", "python") and "." not in value
        known = _RELEASE if what == "tensorflow" else _NUMBERS
        if value and (alone or not known.fullmatch(value)):
            raise _usage(f"'{value[:80]}' is no version of {name}", f"give a version such as {example}")


def _workspace(console: Console) -> Workspace | None:
    """The workspace of this folder; None where there is no matrix that can be read."""
    from tfenv.errors import UsageError
    from tfenv.workspace import here_or_checkout

    try:
        workspace = here_or_checkout(console.note)
        _ = workspace.matrix
    except UsageError as error:
        console.note(f"no cells are named: {error.message}")
        return None
    return workspace


def _matrix(console: Console) -> Matrix | None:
    workspace = _workspace(console)
    return workspace.matrix if workspace else None


def _environment(name: str | None, matrix: Matrix | None) -> Environment | None:
    """The team's environment that a name means."""
    if not name or matrix is None:
        return None
    bare = name.removeprefix(f"{matrix.repository}:").removeprefix("tfenv:")
    return next((own for own in matrix.environments if own.name == bare), None)


def _with_lines(told: Answer, text: str) -> Answer:
    from dataclasses import replace

    from tfenv.lint.question import line_of

    found = tuple(replace(finding, line=line_of(finding, text)) for finding in told.verdict.findings)
    return replace(told, verdict=replace(told.verdict, findings=found))


def _text(told: Answer, environment: str = "") -> str:
    from tfenv.explaining import NOTHING

    words = {"runs": "runs", "limit": "runs, with limits", "refused": "refused", "unknown": "cannot tell"}
    told_of = words[told.verdict.outcome]
    if told.asked == NOTHING and told.verdict.outcome == "runs":
        told_of = "no TensorFlow is named, so there is nothing to judge"
    if told.verdict.gravest == "lint":
        told_of += ", and should be changed all the same"
    lines = [f"{environment or told.cell or told.asked}: {told_of}"]
    if told.cell:
        lines.append(f"  {told.asked}")
    for finding in told.verdict.findings:
        where = f"line {finding.line}: " if finding.line else ""
        lines.append(f"  {finding.severity} ({finding.code}): {where}{finding.message}")
        if finding.remedy:
            lines.append(f"    -> {finding.remedy}")
        if finding.source:
            lines.append(f"    known from: {finding.source}")
    if told.nearest:
        which = "nearest cells, with another driver" if told.other_driver else "nearest cells"
        lines.append(f"  {which}: {', '.join(told.nearest)}")
    if told.choices:
        lines.append("  the best cell of each release that runs there, newest first, with its limits:")
        wide = max(len(choice.tag) for choice in told.choices)
        for choice in told.choices:
            limits = f"  ({', '.join(choice.limits)})" if choice.limits else ""
            lines.append(f"    {choice.tag:<{wide}}  {choice.cell}{limits}")
        if told.again:
            lines.append(f"  what these limits mean: {told.again}")
    return "\n".join(lines)


def _code(told: Answer, *, strict: bool) -> int:
    from tfenv.errors import EXIT_FAILED, EXIT_OK, EXIT_UNVERIFIED

    lint = any(finding.severity == "lint" for finding in told.verdict.findings)
    if told.verdict.outcome == "refused" or (strict and lint):
        return EXIT_FAILED
    return EXIT_UNVERIFIED if told.verdict.outcome == "unknown" else EXIT_OK


def _usage(message: str, remedy: str) -> Exception:
    from tfenv.errors import UsageError

    return UsageError(message, remedy=remedy)
