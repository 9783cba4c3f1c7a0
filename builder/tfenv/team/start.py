"""Start a team's own repository, and bring rows of tfenv's own matrix into it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import __version__, resources
from tfenv.errors import TfenvError, UsageError
from tfenv.files import write_all
from tfenv.workspace import FILE_NAME, Workspace

from .edit import first_matrix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfenv.lock import Resolvers
    from tfenv.model import Cell, Matrix

#: Template of each file of a new repository, by where it goes.
FILES = {
    "README.md": "README.md.j2",
    ".gitignore": "gitignore.j2",
    ".github/tfenv.txt": "tfenv.txt.j2",
    ".github/prepare": "prepare.j2",
    ".github/workflows/environments.yml": "workflow.yml.j2",
}


def catalogue() -> Matrix:
    """tfenv's own matrix: what a team can start from."""
    from tfenv.matrix import load_matrix

    return load_matrix(resources.own_matrix())


def start(
    folder: Path, cells: Sequence[Cell], repository: str, env: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Write a new team's repository; what was written, and what was there already and stays.

    Raises:
        UsageError: there is a matrix.yaml.
    """
    if (folder / FILE_NAME).exists():
        raise UsageError(
            f"{folder / FILE_NAME} exists: this is a team's repository already",
            remedy="add to it: tfenv new NAME --from CELL -r requirements.in",
        )
    folder.mkdir(parents=True, exist_ok=True)
    written, kept = [], []
    for name, text in files(cells).items():
        target = folder / name
        if target.exists():
            kept.append(name)
            continue
        write_all(target.parent, {target.name: text})
        written.append(name)
    for cell in cells:
        written += bring(cell, folder / "images")
    # Last, so that what was broken off can be typed again.
    write_all(folder, {FILE_NAME: first_matrix(resources.own_matrix(), cells, repository)})
    matrix = Workspace(folder, {**env, "TFENV_MATRIX": ""}).matrix
    if missing := {cell.name for cell in cells} - {cell.name for cell in matrix.cells}:
        raise TfenvError(
            f"the new matrix.yaml lacks {', '.join(missing)}", remedy="please report this with its text"
        )
    return [FILE_NAME, *written], kept


def files(cells: Sequence[Cell]) -> dict[str, str]:
    """The files of a new repository beside matrix and images."""
    from tfenv.render import templating

    told = {"version": __version__, "cells": [cell.name for cell in cells]}
    return {
        name: templating().get_template(f"team/repository/{template}").render(**told)
        for name, template in FILES.items()
    }


def bring(cell: Cell, images: Path) -> list[str]:
    """Copy the lock, generated files and digest of tfenv's own cell, where it has them; which."""
    source, target = resources.own_images() / cell.name, images / cell.name
    if not (source / "lock.json").is_file() or target.exists():
        return []
    names = [
        name
        for name in ("Dockerfile", "requirements.lock", "digest.json", "lock.json")
        if (source / name).is_file()
    ]
    write_all(target, {name: (source / name).read_text("utf-8") for name in names})
    if (source / "reports").is_dir():
        shutil.copytree(source / "reports", target / "reports", dirs_exist_ok=True)
    return [f"images/{cell.name}"]


def lock_rows(workspace: Workspace, cells: Iterable[Cell], resolvers: Resolvers) -> list[str]:
    """Lock and render cells that have no lock yet; which."""
    from tfenv.lock import make_lock, write_lock
    from tfenv.render import template_version

    made = []
    for cell in cells:
        if workspace.is_locked(cell):
            continue
        version = template_version(cell.base.kind)
        write_lock(
            make_lock(cell, None, set(), template_version=version, resolvers=resolvers), workspace.images
        )
        write_all(workspace.folder(cell), workspace.rendered(cell))
        made.append(cell.name)
    return made
