"""The files that hold the page, and their texts: what ``tfenv page`` writes and compares."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.model import Environment

from . import gpus, judging
from .collect import Page, collect
from .evidence import Standing, of_lock, standing
from .html import to_html
from .judging import Lookup
from .markdown import BEGIN, replace_between, to_markdown

if TYPE_CHECKING:
    from tfenv.model import Cell
    from tfenv.workspace import Workspace

FOLDER, README = "docs", "README.md"
HTML, MARKDOWN, PICTURE = "matrix.html", "matrix.md", "matrix.png"


def page_of(workspace: Workspace, compiled: Lookup) -> Page:
    """The page of a team's matrix, locks, digests and reports.

    Raises:
        TfenvError: one of these files is damaged.
    """
    matrix = workspace.matrix
    known = gpus.known()
    return collect(
        matrix,
        judging.judge(compiled),
        gpus=known,
        drivers=judging.drivers(matrix.cells, compiled, known),
        capability=gpus.capability,
        standing=lambda cell: _standing(workspace, cell),
        tags=lambda cell: [name.split(":", 1)[1] for name in workspace.tags(cell)],
        about=judging.about(compiled),
    )


def _standing(workspace: Workspace, cell: Cell) -> Standing:
    if not isinstance(cell, Environment):
        return standing(workspace.folder(cell))
    from tfenv.team.behind import behind_now
    from tfenv.team.flow import team_lock

    team = team_lock(workspace, cell)
    late = behind_now(workspace, cell, team) if team is not None else None
    note = f"Its lock has to be made anew: {late.message}." if late else ""
    return of_lock(workspace.folder(cell), workspace.find_lock(cell), note)


def texts(page: Page, root: Path, output: Path | None) -> Mapping[Path, str]:
    """The text of each file: the page, and the table.

    The table goes into the README, or into a file where that has no markers, and for another folder.

    Args:
        root: the folder of matrix.yaml; output: another folder than docs/ in it.

    Raises:
        UsageError: the README has one of the markers, but not both in order.
    """
    readme = root / README
    text = readme.read_text("utf-8") if readme.is_file() else ""
    own = output is None and BEGIN in text
    output = output or root / FOLDER
    near = root if own else output
    picture = _link(near, output / PICTURE) if (output / PICTURE).is_file() else None
    table = to_markdown(page, _link(near, output / HTML), picture)
    second = (readme, replace_between(text, table)) if own else (output / MARKDOWN, table)
    return dict([(output / HTML, to_html(page)), second])


def _link(folder: Path, to: Path) -> str:
    return Path(os.path.relpath(to, folder)).as_posix()
