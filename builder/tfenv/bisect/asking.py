"""From what was typed to a question."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.bisect.changes import environment_of
from tfenv.bisect.endpoints import Asked, Places, asked_of, endpoint, moment, read_wanted
from tfenv.bisect.journal import latest, read_question
from tfenv.bisect.question import Question, Where, question_from_plain
from tfenv.errors import UsageError

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.meant import Meant
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


@dataclass(frozen=True, kw_only=True)
class _Named:
    """What the name of a cell stands for here: what is committed, or the image that it is held back at.

    Args:
        image: of the image that it is held back at, the digest; empty where it is not held back.
    """

    meant: Meant
    lock: Lock
    image: str = ""

    @property
    def cell(self) -> Cell:
        """The cell that it is."""
        return self.meant.cell


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
    options: Options, workspace: Callable[[], Workspace], host: Host, here: Path | None = None
) -> Question:
    """What was asked. A name that is held back is the image that it is held back at, with that one's pins.

    Args:
        workspace: where cells are looked up; only asked where one is named.
        here: where the command runs, this folder by default.

    Raises:
        UsageError: something is missing, unknown, or does not go together.
    """
    _require(options)
    assert options.good and options.bad
    now = datetime.now(timezone.utc)
    look_up = cache(
        lambda name: _look_up(name, workspace(), host)
    )  # which says so once where one is held back
    cell = look_up(options.before[0]) if options.before else None
    ends = [None if _is_no_name(text, now) else look_up(text) for text in (options.bad, options.good)]
    first = cell or next(filter(None, ends), None)
    python, interpreter = _python(options, first.cell.python if first else "", host.env)
    if options.where == "image" and first is None:
        raise UsageError("--in image needs a cell", remedy="name one: tfenv bisect 2.15-cu12 --in image ...")
    from tfenv.bisect.world import host_platform

    cuda = options.cuda or options.where == "image"
    places = Places(
        lock=lambda name: (look_up(name).cell, look_up(name).lock),
        now=lambda: now,
        environment=environment_of(python),
        cuda=cuda,
    )
    asked, asked_by = _asked(options, cell, cuda=cuda)
    if ends[0] and not asked_by[0]:
        asked_by = ("cell", options.bad)
    return Question(
        good=endpoint(options.good, asked, places),
        bad=endpoint(options.bad, asked, places),
        command=options.command,
        python=python,
        interpreter=interpreter,
        platform=first.lock.wheel_platform if options.where == "image" and first else host_platform(),
        folder=str(here or Path.cwd()),
        repeat=options.repeat,
        timeout=options.timeout,
        where=options.where,
        image=_image(first, host.env) if options.where == "image" and first else "",
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


def _is_no_name(end: str, now: datetime) -> bool:
    """Whether an end is a date or a file, so that no cell has to be looked up."""
    return bool(moment(end, now)) or Path(end).exists() or "/" in end


def _look_up(name: str, workspace: Workspace, host: Host) -> _Named:
    from tfenv.meant import meant

    found = meant(name, workspace, host.store.root)
    if found.held is None:
        return _Named(meant=found, lock=workspace.lock(found.cell))
    found.tell(host.console.note)
    image = found.image(host.env)
    return _Named(meant=found, lock=found.lock(workspace, image, host), image=image.id)


def _image(of: _Named, env: Mapping[str, str]) -> str:
    """The image in the engine. Raises ImageMissingError, NotReadyError."""
    from tfenv.engine import check, probe, run_command

    engine = probe(run_command, env)
    check(engine)
    return of.image or of.meant.image_name(engine.client or "docker", run_command)


def _asked(options: Options, cell: _Named | None, *, cuda: bool) -> tuple[Asked | None, tuple[str, str]]:
    if options.requirements is not None:
        label = str(options.requirements)
        return Asked(label=label, requirements=read_wanted(options.requirements)), ("file", label)
    if cell is not None:
        return asked_of(cell.cell, cuda=cuda), ("cell", options.before[0])
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
