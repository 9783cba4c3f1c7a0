"""From what was typed to a question."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.bisect.changes import environment_of
from tfenv.bisect.endpoints import Asked, Places, asked_of, endpoint, moment, read_wanted
from tfenv.bisect.journal import latest, read_question
from tfenv.bisect.question import Question, Where, question_from_plain
from tfenv.errors import UsageError

if TYPE_CHECKING:
    from tfenv.model import Cell, Lock
    from tfenv.workspace import Workspace

LATEST = "latest"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The command line.

    Args:
        before: what stands before ``--``; command: what stands after it.
        python: a version or a path. resume: ``latest``, a name, or None.
    """

    before: tuple[str, ...]
    command: tuple[str, ...]
    good: str | None = None
    bad: str | None = None
    requirements: Path | None = None
    where: Where = "venv"
    python: str | None = None
    cuda: bool = False
    gpus: bool = False
    repeat: int = 1
    timeout: float | None = None
    resume: str | None = None
    fresh: bool = False


def going_on(root: Path, options: Options) -> tuple[Question, Path]:
    """The question of a journal, and its folder.

    Raises:
        UsageError: there is none, or more was typed than goes with it.
    """
    if options.good or options.bad or options.command or options.before or options.requirements:
        raise UsageError(
            "--resume knows the whole question", remedy="type it alone: tfenv bisect --resume [ID]"
        )
    name = options.resume or LATEST
    if name != LATEST and not re.fullmatch(r"[0-9a-f]{12}", name):
        raise UsageError(f"{name} names no bisection", remedy="it is 12 digits and letters from a to f")
    folder = latest(root) if name == LATEST else root / name
    try:
        return question_from_plain(read_question(folder)), folder
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"the bisection in {folder} cannot be gone on with: {error}",
            remedy="type the whole command with --fresh",
        ) from error


def new_question(
    options: Options, workspace: Callable[[], Workspace], env: Mapping[str, str], here: Path | None = None
) -> Question:
    """What was asked.

    Args:
        workspace: where cells are looked up; only asked where one is named.
        here: where the command runs, this folder by default.

    Raises:
        UsageError: something is missing, unknown, or does not go together.
    """
    _require(options)
    assert options.good and options.bad
    now = datetime.now(timezone.utc)
    cell = _cell(options, workspace)
    named = [_named(text, workspace, now) for text in (options.bad, options.good)]
    first = cell or next(filter(None, named), None)
    python, interpreter = _python(options, first[0].python if first else "", env)
    if options.where == "image" and first is None:
        raise UsageError("--in image needs a cell", remedy="name one: tfenv bisect 2.15-cu12 --in image ...")
    from tfenv.bisect.world import host_platform

    cuda = options.cuda or options.where == "image"
    places = Places(
        lock=lambda name: _lock(workspace(), name),
        now=lambda: now,
        environment=environment_of(python),
        cuda=cuda,
    )
    asked, asked_by = _asked(options, cell, cuda=cuda)
    if named[0] and not asked_by[0]:
        asked_by = ("cell", options.bad)
    return Question(
        good=endpoint(options.good, asked, places),
        bad=endpoint(options.bad, asked, places),
        command=options.command,
        python=python,
        interpreter=interpreter,
        platform=first[1].wheel_platform if options.where == "image" and first else host_platform(),
        folder=str(here or Path.cwd()),
        repeat=options.repeat,
        timeout=options.timeout,
        where=options.where,
        image=_image(workspace(), first[0], env) if options.where == "image" and first else "",
        cuda=cuda,
        gpus=options.gpus,
        asked_by=asked_by,
    )


def _require(options: Options) -> None:
    if not options.command:
        raise UsageError(
            "no command is given",
            remedy='put it after --: tfenv bisect --good A --bad B -- python -c "import tensorflow"',
        )
    if not options.good or not options.bad:
        raise UsageError(
            "both ends are needed", remedy="--good A --bad B: dates, cells, locks or requirements files"
        )
    if len(options.before) > 1:
        raise UsageError(
            f"one cell at a time, not {', '.join(options.before)}", remedy="put the command after --"
        )
    if options.before and options.requirements:
        raise UsageError("a cell and -r are both given", remedy="give the one that is to be resolved")
    if options.gpus and options.where != "image":
        raise UsageError("--gpus goes with --in image", remedy="in a venv the command sees all that is here")


def _cell(options: Options, workspace: Callable[[], Workspace]) -> tuple[Cell, Lock] | None:
    return _lock(workspace(), options.before[0]) if options.before else None


def _named(text: str, workspace: Callable[[], Workspace], now: datetime) -> tuple[Cell, Lock] | None:
    """The cell that an end is, where it is one."""
    if moment(text, now) or Path(text).exists() or "/" in text:
        return None
    return _lock(workspace(), text)


def _lock(workspace: Workspace, name: str) -> tuple[Cell, Lock]:
    (cell,) = workspace.cells((name,))
    return cell, workspace.lock(cell)


def _image(workspace: Workspace, cell: Cell, env: Mapping[str, str]) -> str:
    """The cell's image in the engine. Raises ImageMissingError, NotReadyError."""
    from tfenv.engine import check, probe, run_command
    from tfenv.runline import first_image

    engine = probe(run_command, env)
    check(engine)
    return first_image(workspace.image_names(cell), cell.name, engine.client or "docker", run_command)


def _asked(
    options: Options, cell: tuple[Cell, Lock] | None, *, cuda: bool
) -> tuple[Asked | None, tuple[str, str]]:
    if options.requirements is not None:
        label = str(options.requirements)
        return Asked(label=label, requirements=read_wanted(options.requirements)), ("file", label)
    if cell is not None:
        return asked_of(cell[0], cuda=cuda), ("cell", options.before[0])
    return None, ("", "")


def _python(options: Options, of_cell: str, env: Mapping[str, str]) -> tuple[str, str]:
    """(version such as ``3.11``, path of the interpreter; empty in an image)."""
    asked = options.python or of_cell or f"{sys.version_info.major}.{sys.version_info.minor}"
    if options.where == "image":
        if options.python:
            raise UsageError("--python goes with a venv", remedy="an image has its own: name another cell")
        return asked, ""
    from tfenv.bisect.interpreter import find_python, version_of

    if re.fullmatch(r"\d+\.\d+", asked):
        return asked, find_python(asked, env)
    if "/" in asked:
        return version_of(asked), str(Path(asked).absolute())
    raise UsageError(f"{asked} is no Python", remedy="give a version such as 3.11, or a path")
