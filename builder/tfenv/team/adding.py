"""Add an environment to a team's repository: all of it, or nothing."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv import cells, resources
from tfenv.errors import MatrixError, UsageError
from tfenv.files import write_all
from tfenv.workspace import FILE_NAME, Workspace

from . import flow, start
from .edit import add_cell, add_environment, dumped, round_trip
from .extras import extras
from .names import wrong_name
from .requirements import read_requirements

if TYPE_CHECKING:
    from tfenv import lock
    from tfenv.model import Cell, Environment, Matrix

    from .model import TeamLock
    from .resolvers import Resolvers


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a new environment is to be.

    Args:
        start: name or alias of a cell; files: requirement files; apt, extras: as in matrix.yaml.
        exclude_newer: RFC 3339 time. replace: in place of one of that name.
    """

    name: str
    start: str
    files: tuple[Path, ...] = ()
    apt: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    exclude_newer: str
    replace: bool = False


def find_cell(own: Matrix, name: str) -> tuple[Cell, bool]:
    """The cell that is meant, and whether the team's matrix lacks it yet.

    Raises:
        UsageError: neither the team's matrix nor tfenv's own has such a cell.
    """
    try:
        found = cells.resolve(own, name)
    except UsageError:
        return cells.resolve(start.catalogue(), name), True
    if found in own.environments:
        raise UsageError(f"{name} is a team's environment itself", remedy="extend the cell that it extends")
    return found, False


def add(
    workspace: Workspace, wish: Wish, *, rows: lock.Resolvers, resolvers: Resolvers
) -> tuple[Environment, TeamLock]:
    """Add it to matrix.yaml, lock and render it. Nothing is written where any of that fails.

    Raises:
        UsageError: the name, the requirements or the cell cannot be taken; the packages conflict.
    """
    if why := wrong_name(wish.name):
        raise UsageError(
            f"an environment cannot be called {wish.name!r}: {why}", remedy="give it another name"
        )
    for extra in wish.extras:
        if extra not in extras():
            raise UsageError(f"there is no extra {extra!r}", remedy=f"there are: {', '.join(extras())}")
    if not (wish.files or wish.apt or wish.extras):
        raise UsageError(
            f"{wish.name} asks for nothing beside the cell",
            remedy="give -r FILE, --apt PACKAGE or --extra NAME",
        )
    cell, new = find_cell(workspace.matrix, wish.start)
    asked = [text for file in wish.files for text in read_requirements(file, cell)]
    with tempfile.TemporaryDirectory(prefix="tfenv-new-") as folder:
        trial = _trial(workspace, wish, cell, new, asked, Path(folder))
        made = _made(trial, wish.name)
        start.lock_rows(trial, [made.start], rows)
        _, locked = flow.relock(trial, made, resolvers=resolvers)
        flow.write_lock(trial, made, locked)
        write_all(trial.folder(made), trial.rendered(made))
        _take_over(trial, workspace, made)
    return made, locked


def _trial(
    workspace: Workspace, wish: Wish, cell: Cell, new: bool, asked: Sequence[str], folder: Path
) -> Workspace:
    """A copy of what counts of the team's repository, with the new environment in its matrix."""
    data = round_trip().load(workspace.matrix_path.read_text("utf-8"))
    if new:
        add_cell(data, round_trip().load(resources.own_matrix().read_text("utf-8")), cell)
    add_environment(data, wish.name, entry(wish, cell.name, asked), replace=wish.replace)
    write_all(folder, {FILE_NAME: dumped(data)})
    trial = Workspace(folder, {})
    if workspace.folder(cell).is_dir():
        shutil.copytree(workspace.folder(cell), trial.folder(cell))
    else:
        start.bring(cell, trial.images)
    return trial


def _made(trial: Workspace, name: str) -> Environment:
    try:
        return next(one for one in trial.matrix.environments if one.name == name)
    except MatrixError as error:
        # The lines are those of a file that nobody has seen.
        said = re.sub(rf"{re.escape(str(trial.matrix_path))}(:\d+:\d+)?", FILE_NAME, error.message)
        raise MatrixError(said, remedy="correct what was typed; nothing was changed") from error


def entry(wish: Wish, cell: str, asked: Sequence[str]) -> Mapping[str, Any]:
    """What matrix.yaml says of it. ``cell`` is the canonical name: an alias may come to mean another."""
    told = {
        "from": cell,
        "requirements": list(dict.fromkeys(asked)),
        "apt": list(dict.fromkeys(wish.apt)),
        "extras": list(dict.fromkeys(wish.extras)),
        "exclude_newer": wish.exclude_newer,
    }
    return {key: value for key, value in told.items() if value}


def _take_over(trial: Workspace, workspace: Workspace, made: Environment) -> None:
    for folder in (trial.folder(made.start), trial.folder(made)):
        files = {path.name: path.read_text("utf-8") for path in sorted(folder.iterdir()) if path.is_file()}
        write_all(workspace.images / folder.name, files)
        if (folder / "reports").is_dir() and folder.name != made.name:
            shutil.copytree(
                folder / "reports", workspace.images / folder.name / "reports", dirs_exist_ok=True
            )
    # Last: what no matrix names is of no account.
    write_all(
        workspace.matrix_path.parent, {workspace.matrix_path.name: trial.matrix_path.read_text("utf-8")}
    )
