"""All answers that the page can give: for each cell, compute capability and range of drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from tfenv.versions import order

from .gpus import Gpu

if TYPE_CHECKING:
    from tfenv.model import Cell

State = Literal["runs", "limited", "refused", "unknown"]
#: A driver older than any that is known: the lower end of the first range.
OLDEST = "0"
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether a cell runs.

    Args:
        sentences: why not, or with which limits. remedies: what to do about it.
    """

    state: State
    sentences: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


#: (cell, GPU or None, driver or None) -> answer. None: the reader did not say.
Judge = Callable[["Cell", Gpu | None, str | None], Answer]


@dataclass(frozen=True, kw_only=True)
class Span:
    """Drivers that get one answer: from ``since`` up to, but without, ``until``; both may be empty."""

    since: str
    until: str
    answer: Answer


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers, each kept once.

    Args:
        drivers: lower ends of the ranges, oldest first; the first is ``OLDEST``.
        kept: the different answers.
        grids: the different tables of indices into ``kept``; a line for each GPU and a column for each
            driver, both after a first one for *not said*.
        grid_of: which of the grids a cell has, by its name.
    """

    gpus: tuple[Gpu, ...]
    drivers: tuple[str, ...]
    kept: tuple[Answer, ...]
    grids: tuple[tuple[tuple[int, ...], ...], ...]
    grid_of: Mapping[str, int]

    def general(self, cell: str) -> Answer:
        """What holds of a cell on every GPU and driver."""
        return self.kept[self.grids[self.grid_of[cell]][0][0]]

    def spans(self, grid: int, gpu: int) -> tuple[Span, ...]:
        """The answers of a grid for a GPU (its index in ``gpus``), by driver, without the remedies.

        Equal neighbours are one; where the GPU alone is refused, the drivers do not matter.
        """
        always, *line = (replace(self.kept[i], remedies=()) for i in self.grids[grid][gpu + 1])
        if always.state == "refused":
            return (Span(since="", until="", answer=always),)
        starts = [i for i, answer in enumerate(line) if i == 0 or answer != line[i - 1]]
        ends = [*starts[1:], None]
        return tuple(
            Span(
                since=self.drivers[start] if start else "",
                until=self.drivers[end] if end else "",
                answer=line[start],
            )
            for start, end in zip(starts, ends, strict=True)
        )


def ask(cells: Sequence[Cell], judge: Judge, gpus: Sequence[Gpu], drivers: Iterable[str]) -> Answers:
    """Ask for every cell, GPU and range of drivers.

    Args:
        drivers: versions at which an answer may change; those at which none does are dropped.
    """
    starts = (OLDEST, *sorted(set(drivers), key=order))
    kept: dict[Answer, int] = {}
    grids: dict[tuple[tuple[int, ...], ...], int] = {}
    grid_of: dict[str, int] = {}
    for cell in cells:
        grid = tuple(
            tuple(_index(kept, judge(cell, gpu, driver)) for driver in (None, *starts))
            for gpu in (None, *gpus)
        )
        grid_of[cell.name] = _index(grids, grid)
    columns = _changing(tuple(grids), len(starts))
    return Answers(
        gpus=tuple(gpus),
        drivers=tuple(starts[column - 1] for column in columns[1:]),
        kept=tuple(kept),
        grids=tuple(tuple(tuple(line[i] for i in columns) for line in grid) for grid in grids),
        grid_of=grid_of,
    )


def _index(seen: dict[_T, int], value: _T) -> int:
    return seen.setdefault(value, len(seen))


def _changing(grids: Sequence[Sequence[Sequence[int]]], count: int) -> list[int]:
    """The columns to keep: *not said*, the first range, and each range that differs from the one before."""
    return [0, 1] + [
        column
        for column in range(2, count + 1)
        if any(line[column] != line[column - 1] for grid in grids for line in grid)
    ]
