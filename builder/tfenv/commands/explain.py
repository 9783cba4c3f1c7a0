"""``tfenv explain``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfenv.commands import _environments, _pasted
from tfenv.commands._common import emit, json_option

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.explaining import Answer
    from tfenv.model import Environment, Matrix
    from tfenv.workspace import Workspace

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
    from tfenv.commands import _asked
    from tfenv.compat.table import known
    from tfenv.console import Console
    from tfenv.errors import UsageError
    from tfenv.explaining import answer
    from tfenv.proven import verified_on

    console = Console()
    files = [requirements_file, dockerfile, cells_file]
    if sum(file is not None for file in files) > 1:
        raise UsageError(
            "more than one file is given", remedy="give one of --requirements, --dockerfile and --matrix"
        )
    sort, content = _asked.content_of(requirements_file, dockerfile, cells_file)
    asked_name = name
    if _pasted.is_text(name) and not sort:
        from tfenv.knowledge.sorting import sort_of

        text = _pasted.read(name or "", console)
        sort, content = sort_of(text), text
        if sort == "output":
            shown = _pasted.gpus_in(text, asked)
            if shown is None:
                return _pasted.explain(text, asked, lambda: _matrix(console), as_json=as_json)
            sort, content, asked = "", "", {**asked, **shown}
        name = None
    workspace = _workspace(console)
    matrix = workspace.matrix if workspace else None
    environment = _environment(name, matrix)
    base = _asked.query_of(environment.start.name if environment else name, asked, bool(sort), matrix)
    world = known()
    # An environment says itself what was verified of it.
    tells = verified_on(workspace) if workspace and not environment else None
    codes = []
    pasted = _pasted.is_text(asked_name) and sort == "dockerfile"
    for query, found in _asked.questions(base, sort, content):
        _asked.require_versions(query)
        told = answer(query, world, matrix, found, tells)
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
    if told.verified:
        lines.append(f"  verified on {told.verified}")
    if told.instead:
        other = told.instead
        lines.append(f"  another cell of this release was verified: {other.tag} ({other.cell})")
        lines.append(f"    on {other.verified}")
    if told.nearest:
        which = "nearest cells, with another driver" if told.other_driver else "nearest cells"
        lines.append(f"  {which}: {', '.join(told.nearest)}")
    if told.choices:
        where = ", and where it was verified" if any(choice.verified for choice in told.choices) else ""
        lines.append(
            f"  the best cell of each release that runs there, newest first, with its limits{where}:"
        )
        wide = max(len(choice.tag) for choice in told.choices)
        for choice in told.choices:
            limits = f"  ({', '.join(choice.limits)})" if choice.limits else ""
            verified = f"  verified on {choice.verified}" if choice.verified else ""
            lines.append(f"    {choice.tag:<{wide}}  {choice.cell}{limits}{verified}")
        if told.again:
            lines.append(f"  what these limits mean: {told.again}")
    return "\n".join(lines)


def _code(told: Answer, *, strict: bool) -> int:
    from tfenv.errors import EXIT_FAILED, EXIT_OK, EXIT_UNVERIFIED

    lint = any(finding.severity == "lint" for finding in told.verdict.findings)
    if told.verdict.outcome == "refused" or (strict and lint):
        return EXIT_FAILED
    return EXIT_UNVERIFIED if told.verdict.outcome == "unknown" else EXIT_OK
