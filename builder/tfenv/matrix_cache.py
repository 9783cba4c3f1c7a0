"""The matrix as it was last expanded, for as long as nothing that decides it has changed.

Reading matrix.yaml takes pydantic and ruamel.yaml, which take most of a short command's time to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tfenv.memo import Memo, code_version, hash_of
from tfenv.model import Base, Cell, CudaFrom, CudaSet, Environment, Matrix, Row
from tfenv.plain import from_plain, to_plain

_T = TypeVar("_T")
_MAX_BYTES = 1_000_000


def load_from_yaml(path: Path) -> Matrix:
    """``matrix.load_matrix``, imported when it is needed."""
    from tfenv.matrix import load_matrix

    return load_matrix(path)


def matrix_key(path: Path, *, code: Callable[[], str] = code_version) -> str | None:
    """Hash of all that decides the matrix of a file; None where it is no readable file of a sane size."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return None
        return hash_of(b"matrix", code().encode(), path.read_bytes())
    except OSError:
        return None


def cached_matrix(
    path: Path,
    memo: Memo,
    *,
    load: Callable[[Path], Matrix] = load_from_yaml,
    code: Callable[[], str] = code_version,
) -> Matrix:
    """The matrix of a file, read and checked anew only if something that decides it has changed.

    Raises:
        MatrixError: all problems of the file, each with line and column.
    """
    return memo.recall(lambda: matrix_key(path, code=code), lambda: load(path), _dump, _load)


@dataclass(frozen=True)
class _Kept:
    """A matrix whose cells name their row, base and CUDA set by number: each has many cells.

    Args:
        rows, bases: the matrix's own, of which there are ``own_rows`` and ``own_bases``, then the cells'.
        cells: row, Python, base, CUDA set, CUDA source.
        environments: cell, title, asked, apt, extras, exclude_newer.
    """

    repository: str
    refused: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    own_rows: int
    bases: tuple[Base, ...]
    own_bases: int
    sets: tuple[CudaSet, ...]
    cells: tuple[tuple[int, str, int, int, CudaFrom], ...]
    environments: tuple[tuple[int, str, tuple[str, ...], tuple[str, ...], tuple[str, ...], str], ...]


def _dump(matrix: Matrix) -> Any:
    rows = _with(matrix.rows, (cell.row for cell in matrix.cells))
    bases = _with(matrix.bases, (cell.base for cell in matrix.cells))
    sets = tuple(dict.fromkeys(cell.cuda_set for cell in matrix.cells))
    kept = _Kept(
        repository=matrix.repository,
        refused=matrix.refused,
        rows=rows,
        own_rows=len(matrix.rows),
        bases=bases,
        own_bases=len(matrix.bases),
        sets=sets,
        cells=tuple(
            (
                rows.index(cell.row),
                cell.python,
                bases.index(cell.base),
                sets.index(cell.cuda_set),
                cell.cuda_from,
            )
            for cell in matrix.cells
        ),
        environments=tuple(
            (matrix.cells.index(own.start), own.title, own.asked, own.apt, own.extras, own.exclude_newer)
            for own in matrix.environments
        ),
    )
    return to_plain(kept)


def _load(data: Any) -> Matrix:
    kept = from_plain(_Kept, data)
    cells = tuple(
        Cell(row=kept.rows[r], python=p, base=kept.bases[b], cuda_set=kept.sets[s], cuda_from=source)
        for r, p, b, s, source in kept.cells
    )
    return Matrix(
        repository=kept.repository,
        cells=cells,
        refused=kept.refused,
        bases=kept.bases[: kept.own_bases],
        rows=kept.rows[: kept.own_rows],
        environments=tuple(
            Environment(
                **vars(cells[n]), title=title, asked=asked, apt=apt, extras=extras, exclude_newer=newest
            )
            for n, title, asked, apt, extras, newest in kept.environments
        ),
    )


def _with(own: tuple[_T, ...], used: Iterable[_T]) -> tuple[_T, ...]:
    return (*own, *dict.fromkeys(one for one in used if one not in own))
