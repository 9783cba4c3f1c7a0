"""Which tags a cell has: one rule, no table.

An alias says as much of a cell as its author wanted to: a release, a minor release or ``latest``; a
CUDA major version; a Python; a base. It belongs to the best of the cells it fits: the highest
release first, then the row's default base, its default Python, and after those the higher Python.
Release candidates answer to their full name only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import product
from typing import TYPE_CHECKING, Any

from .versions import is_final, major, minor, order

if TYPE_CHECKING:
    from .model import Cell, Matrix

#: What the engine admits as a tag.
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)


def aliases(cell: Cell, matrix: Matrix) -> tuple[str, ...]:
    """All tags that belong to a cell, the most specific first: its canonical name, which never moves."""
    return all_aliases(matrix)[cell.name]


def all_aliases(matrix: Matrix) -> dict[str, tuple[str, ...]]:
    """``aliases`` of every cell, by canonical name; one pass over the matrix."""
    owned = owners(matrix)
    return {
        cell.name: (cell.name, *(name for name in _names(cell) if owned[name].name == cell.name))
        for cell in matrix.cells
    }


def owners(matrix: Matrix) -> dict[str, Cell]:
    """Every name that a cell answers to, and that cell."""
    best: dict[str, Cell] = {}
    for cell in sorted(matrix.cells, key=rank):
        best.update(dict.fromkeys(_names(cell), cell))
    best.update((cell.name, cell) for cell in matrix.cells)
    return best


def dated(alias: str, day: date) -> str:
    """The frozen form of an alias, e.g. ``2.15-cu12-20240320``."""
    return f"{alias}-{day:%Y%m%d}"


def _names(cell: Cell) -> Iterator[str]:
    """The aliases that fit a cell, most specific first."""
    release = cell.row.tensorflow
    cuda = f"-cu{major(cell.cuda_set.cuda)}"
    heads = [release + cuda, release]
    if is_final(release):
        heads += [minor(release) + cuda, minor(release), "latest"]
    for head, python, base in product(heads, (f"-py{cell.python}", ""), (f"-{cell.base.name}", "")):
        yield head + python + base


def rank(cell: Cell) -> Any:
    """Orders cells from worst to best, of several that fit an alias or a question."""
    row = cell.row
    return (
        order(row.tensorflow),
        cell.base.name == row.default_base,
        cell.python == row.default_python,
        order(cell.python),
        -row.bases.index(cell.base.name),
    )
