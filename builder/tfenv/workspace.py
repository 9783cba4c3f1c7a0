"""The folder a command works in: matrix.yaml, images/ beside it, and the locks in there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.errors import UsageError

if TYPE_CHECKING:
    from tfenv.model import Cell, Lock, Matrix


@dataclass(frozen=True)
class Workspace:
    """A team's repository, found from ``start``.

    Args:
        start: folder in which the command was typed.
        env: environment variables; TFENV_MATRIX names another matrix.
    """

    start: Path
    env: Mapping[str, str]

    @cached_property
    def matrix_path(self) -> Path:
        """matrix.yaml of this folder or the nearest above it."""
        from tfenv.matrix import find_matrix

        return find_matrix(self.start, self.env)

    @cached_property
    def matrix(self) -> Matrix:
        """The matrix, read and checked."""
        from tfenv.matrix import load_matrix

        return load_matrix(self.matrix_path)

    @property
    def images(self) -> Path:
        """The folder of generated files: images/ beside matrix.yaml."""
        return self.matrix_path.parent / "images"

    def folder(self, cell: Cell) -> Path:
        """The generated files of one cell."""
        return self.images / cell.name

    def cells(self, names: tuple[str, ...], *, every: bool = False) -> tuple[Cell, ...]:
        """The named cells, or all; each once, in the order given.

        Raises:
            UsageError: nothing is named, or a name is no cell; says what is nearest.
        """
        from tfenv.cells import resolve

        if every:
            return self.matrix.cells
        if not names:
            raise UsageError("no cell is named", remedy="name one (tfenv list shows them), or type --all")
        return tuple(dict.fromkeys(resolve(self.matrix, name) for name in names))

    def lock(self, cell: Cell) -> Lock:
        """The cell's committed lock.

        Raises:
            UsageError: there is none yet.
        """
        lock = self.find_lock(cell)
        if lock is None:
            raise UsageError(f"{cell.name} is not locked", remedy=f"type: tfenv lock {cell.name}")
        return lock

    def find_lock(self, cell: Cell) -> Lock | None:
        """The cell's committed lock, None where there is none."""
        from tfenv.lockfile import LOCK_NAME, read_lock

        path = self.folder(cell) / LOCK_NAME
        return read_lock(path) if path.exists() else None

    def tags(self, cell: Cell) -> tuple[str, ...]:
        """The image names of a cell, its canonical name first.

        Of aliases that differ only in their suffixes the shortest is enough.
        """
        from tfenv.tags import aliases

        canonical, *others = aliases(cell, self.matrix)
        shortest: dict[str, str] = {}
        for alias in others:
            head = alias.split("-py")[0].removesuffix(f"-{cell.base.name}")
            shortest[head] = min(alias, shortest.get(head, alias), key=len)
        return tuple(f"{self.matrix.repository}:{tag}" for tag in (canonical, *shortest.values()))


def here() -> Workspace:
    """The workspace of the current folder and environment."""
    return Workspace(Path.cwd(), os.environ)
