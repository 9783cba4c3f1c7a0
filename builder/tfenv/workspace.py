"""The folder a command works in: matrix.yaml, images/ beside it, and the locks in there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.errors import MatrixError, UsageError
from tfenv.files import LOCK_NAME
from tfenv.model import Environment

if TYPE_CHECKING:
    from tfenv.memo import Memo
    from tfenv.model import Cell, Lock, Matrix

FILE_NAME = "matrix.yaml"


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
        return find_matrix(self.start, self.env)

    @cached_property
    def matrix(self) -> Matrix:
        """The matrix, read and checked."""
        from tfenv.matrix_cache import cached_matrix

        return cached_matrix(self.matrix_path, self.memo)

    @cached_property
    def memo(self) -> Memo:
        """What is known from earlier commands; nothing where there is no place for it."""
        from tfenv.memo import Memo
        from tfenv.store import default_store

        place = any(self.env.get(name) for name in ("TFENV_CACHE", "XDG_CACHE_HOME", "HOME"))
        return Memo(default_store(self.env).memo_dir if place else None)

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
        if every and names:
            raise UsageError("cells are named, and --all", remedy="give one of the two")
        if every:
            return (*self.matrix.cells, *self.matrix.environments)
        if not names:
            raise UsageError("no cell is named", remedy="name one (tfenv list shows them), or type --all")
        from tfenv.cells import resolve

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
        """The cell's committed lock, None where there is none; an environment's with its row's."""
        if not self.is_locked(cell):
            return None
        if isinstance(cell, Environment):
            from tfenv.team.committed import whole_lock

            return whole_lock(cell, self.find_lock(cell.start), self.images)
        from tfenv.lockfile import read_lock

        return read_lock(self.lock_path(cell))

    def is_locked(self, cell: Cell) -> bool:
        """Whether the cell has a committed lock, of whatever worth."""
        return self.lock_path(cell).exists()

    def lock_path(self, cell: Cell) -> Path:
        """Where the cell's committed lock is, or would be."""
        return self.folder(cell) / LOCK_NAME

    def rendered(self, cell: Cell, lock: Lock | None = None) -> dict[str, str]:
        """The generated files, by name, that the cell's committed lock gives.

        Args:
            lock: the committed lock, where it has been read already.

        Raises:
            UsageError: there is no lock, or it was made for other templates. TfenvError: it is damaged.
        """
        if isinstance(cell, Environment):
            from tfenv.team.committed import files

            return files(cell, self.lock(cell.start), self.images)
        from tfenv.render_cache import cached_files

        def text() -> bytes:
            if lock is None:
                return self.lock_path(cell).read_bytes()
            from tfenv.lockfile import dump_lock

            return dump_lock(lock).encode()

        def make() -> dict[str, str]:
            from tfenv import render

            of = lock or self.lock(cell)
            render.require_current_template(cell, of)
            return render.render(cell, of)

        return cached_files(cell, text, self.memo, make)

    def memo_keys(self) -> set[str]:
        """What earlier commands may have kept of the matrix and the locks as they are now."""
        from tfenv.matrix_cache import matrix_key
        from tfenv.render_cache import files_key

        files = (files_key(cell, self.lock_path(cell).read_bytes) for cell in self.matrix.cells)
        return {key for key in (matrix_key(self.matrix_path), *files) if key}

    @cached_property
    def aliases(self) -> dict[str, tuple[str, ...]]:
        """All tags of every cell, without the repository, by canonical name."""
        from tfenv.tags import all_aliases

        return all_aliases(self.matrix)

    def tags(self, cell: Cell, *, ending: str = "") -> tuple[str, ...]:
        """The image names of a cell, its canonical name first.

        Of aliases that differ only in their suffixes the shortest is enough. The canonical name never
        means anything but the lock: an image of other inputs gets that name with an ending. One on a
        stand-in for its base gets no other name.

        Args:
            ending: of the canonical name: ``-unlocked``, ``-stand-in`` or none.
        """
        if isinstance(cell, Environment):
            return (f"{self.matrix.repository}:{cell.name}{ending}",)
        canonical, *others = self.aliases[cell.name]
        shortest: dict[str, str] = {}
        for alias in others:
            head = alias.split("-py")[0].removesuffix(f"-{cell.base.name}")
            shortest[head] = min(alias, shortest.get(head, alias), key=len)
        names = (canonical + ending, *(shortest.values() if ending != "-stand-in" else ()))
        return tuple(f"{self.matrix.repository}:{tag}" for tag in names)

    def image_names(self, cell: Cell) -> tuple[str, ...]:
        """Where a cell's image may be found in the engine, best first."""
        return (self.tags(cell)[0], self.tags(cell, ending="-unlocked")[0])


def find_matrix(start: Path, environ: Mapping[str, str]) -> Path:
    """The matrix.yaml of a folder or of the nearest one above it; $TFENV_MATRIX wins.

    Raises:
        MatrixError: there is none.
    """
    if named := environ.get("TFENV_MATRIX"):
        return Path(named)
    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    raise MatrixError(
        f"no {FILE_NAME} in {start} or above it",
        remedy=f"change to a folder that has one, or name it: TFENV_MATRIX=/path/to/{FILE_NAME}",
    )


def here() -> Workspace:
    """The workspace of the current folder and environment."""
    return Workspace(Path.cwd(), os.environ)


def here_or_checkout(say: Callable[[str], None]) -> Workspace:
    """``here`` for commands that write nothing to it: outside of any matrix the checkout's own is meant.

    Args:
        say: where "using ..." goes.
    """
    from tfenv import resources

    workspace = here()
    try:
        _ = workspace.matrix_path
    except MatrixError:
        own = resources.checkout_matrix()
        if own is None:
            raise
        say(f"no {FILE_NAME} here or above: using {own}")
        return Workspace(own.parent, workspace.env)
    return workspace
