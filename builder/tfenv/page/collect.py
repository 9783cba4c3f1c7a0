"""From a matrix, its proofs and the answers to what the page shows: minor release > release > cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from tfenv.cells import parse_name
from tfenv.versions import minor, order

from .answers import Answer, Answers, Judge, Span, ask
from .evidence import Proof, Standing
from .gpus import Gpu

if TYPE_CHECKING:
    from tfenv.model import Cell, Matrix


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One cell.

    Args:
        number: its place on the page, from 0. alias: the shortest tag, or its name.
        general: what holds on every GPU and driver.
        proven: indices of the GPUs of the same compute capability as one that a report is of, each with
            the proof.
    """

    number: int
    cell: Cell
    alias: str
    standing: Standing
    general: Answer
    proven: tuple[tuple[int, Proof], ...]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Combinations of one release that are refused for one reason; ``number`` counts from 1."""

    number: int
    pairs: tuple[tuple[str, str], ...]
    why: str

    @property
    def pythons(self) -> tuple[str, ...]:
        """The Pythons in it, each once."""
        return tuple(sorted({python for python, _ in self.pairs}, key=order))

    @property
    def bases(self) -> tuple[str, ...]:
        """The bases in it, each once."""
        return tuple(dict.fromkeys(base for _, base in self.pairs))


@dataclass(frozen=True, kw_only=True)
class Line:
    """GPUs that get the same answers from the same drivers."""

    gpus: tuple[Gpu, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """What GPUs and drivers do with the cells of a release on some bases.

    Args:
        grid: its number. general: what holds on every GPU and driver.
    """

    grid: int
    general: Answer
    bases: tuple[str, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class Release:
    """One release: Python x base, and in each place what there is.

    Args:
        about: what it was compiled for, in sentences. sets: of CUDA libraries that its cells hold.
        bases: the columns; lines: Python, and for each base the cells or the number of a refusal.
    """

    tensorflow: str
    about: tuple[str, ...]
    sets: tuple[str, ...]
    bases: tuple[str, ...]
    lines: tuple[tuple[str, tuple[tuple[Entry | Refused, ...], ...]], ...]
    tables: tuple[Table, ...]
    refused: tuple[Refused, ...]

    @property
    def scattered(self) -> tuple[Refused, ...]:
        """The refusals that do not cover the whole lines they are in."""
        return tuple(
            of
            for of in self.refused
            if any(of in ones and not everywhere(places) for _, places in self.lines for ones in places)
        )

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Its cells, in the order of the page."""
        return tuple(one for _, places in self.lines for of in places for one in of if isinstance(one, Entry))


@dataclass(frozen=True, kw_only=True)
class Page:
    """All that is shown.

    Args:
        minors: the releases of each minor release, the newest first. own: a team's environments, by name.
    """

    repository: str
    minors: tuple[tuple[str, tuple[Release, ...]], ...]
    answers: Answers
    own: tuple[Entry, ...] = ()

    @property
    def pythons(self) -> tuple[str, ...]:
        """Every Python of which something is said, oldest first."""
        return tuple(sorted({python for of in self.releases for python, _ in of.lines}, key=order))

    @property
    def releases(self) -> tuple[Release, ...]:
        """Every release, the newest first."""
        return tuple(release for _, releases in self.minors for release in releases)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every cell of a release, in the order of the page."""
        return tuple(entry for release in self.releases for entry in release.entries)


def collect(
    matrix: Matrix,
    judge: Judge,
    *,
    gpus: Sequence[Gpu],
    drivers: Iterable[str],
    capability: Callable[[str], str | None],
    standing: Callable[[Cell], Standing],
    tags: Callable[[Cell], Sequence[str]],
    about: Callable[[str], Sequence[str]],
) -> Page:
    """Gather what the page shows.

    Args:
        drivers: versions at which an answer may change.
        capability: compute capability of a GPU by the name that its driver gives; None if not known.
        tags: names of a cell's image without the repository, the canonical one first.
        about: sentences on a release.
    """
    answers = ask((*matrix.cells, *matrix.environments), judge, gpus, drivers)
    refused = _refused(matrix.refused)
    cells: dict[str, list[Cell]] = {}
    for cell in matrix.cells:
        cells.setdefault(cell.row.tensorflow, []).append(cell)
    numbers = count()

    def entry(cell: Cell) -> Entry:
        found = standing(cell)
        return Entry(
            number=next(numbers),
            cell=cell,
            alias=min(tags(cell), key=len),
            standing=found,
            general=answers.general(cell.name),
            proven=_proven(found, gpus, capability),
        )

    minors: dict[str, list[Release]] = {}
    for tensorflow in sorted({*cells, *refused}, key=order, reverse=True):
        release = _release(
            tensorflow, cells.get(tensorflow, ()), refused.get(tensorflow, ()), entry, answers, about
        )
        minors.setdefault(minor(tensorflow), []).append(release)
    return Page(
        repository=matrix.repository,
        minors=tuple((name, tuple(releases)) for name, releases in minors.items()),
        answers=answers,
        own=tuple(entry(cell) for cell in sorted(matrix.environments, key=lambda cell: cell.name)),
    )


def everywhere(places: Sequence[Sequence[Entry | Refused]]) -> Refused | None:
    """The refusal that is all there is in a line; None if there is something else too."""
    first = places[0][0] if places and places[0] else None
    alone = isinstance(first, Refused) and all(tuple(ones) == (first,) for ones in places)
    return first if isinstance(first, Refused) and alone else None


def _release(
    tensorflow: str,
    cells: Sequence[Cell],
    refused: Sequence[Refused],
    entry: Callable[[Cell], Entry],
    answers: Answers,
    about: Callable[[str], Sequence[str]],
) -> Release:
    places = {(cell.python, cell.base.name) for cell in cells} | {pair for of in refused for pair in of.pairs}
    wanted = cells[0].row.bases if cells else ()
    bases = tuple(dict.fromkeys([*wanted, *(base for _, base in sorted(places))]))

    def place(python: str, base: str) -> tuple[Entry | Refused, ...]:
        there = [entry(cell) for cell in cells if (cell.python, cell.base.name) == (python, base)]
        return (*there, *(of for of in refused if (python, base) in of.pairs))

    pythons = sorted({python for python, _ in places}, key=order, reverse=True)
    lines = tuple((python, tuple(place(python, base) for base in bases)) for python in pythons)
    return Release(
        tensorflow=tensorflow,
        about=(*about(tensorflow), *_why_others(cells)),
        sets=tuple(dict.fromkeys(cell.cuda_set.name for cell in cells)),
        bases=bases,
        lines=lines,
        tables=_tables(cells, answers),
        refused=tuple(refused),
    )


def _why_others(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Why the images of a release hold newer libraries than it was compiled for, as its rows say."""
    reasons = dict.fromkeys(cell.row.other_libraries for cell in cells if cell.row.other_libraries)
    return tuple(f"Why newer libraries: {reason.rstrip('.')}." for reason in reasons)


def _proven(
    of: Standing, gpus: Sequence[Gpu], capability: Callable[[str], str | None]
) -> tuple[tuple[int, Proof], ...]:
    """The newest report that decides, for each compute capability."""
    found: dict[int, Proof] = {}
    for proof in of.proofs:
        tried = {capability(name) for name in proof.names} if proof.decides else set()
        for i, gpu in enumerate(gpus):
            # The images are for x86-64: what was tried was no GPU of another host.
            if gpu.compute_capability in tried and not gpu.host:
                found.setdefault(i, proof)
    return tuple(sorted(found.items(), key=lambda pair: pair[0]))


def _tables(cells: Sequence[Cell], answers: Answers) -> tuple[Table, ...]:
    """One table for each different grid of a release."""
    by_grid: dict[int, list[str]] = {}
    for cell in cells:
        by_grid.setdefault(answers.grid_of[cell.name], []).append(cell.base.name)
    return tuple(
        Table(
            grid=grid,
            general=answers.kept[answers.grids[grid][0][0]],
            bases=tuple(dict.fromkeys(bases)),
            lines=_lines(grid, answers),
        )
        for grid, bases in by_grid.items()
    )


def _lines(grid: int, answers: Answers) -> tuple[Line, ...]:
    alike: dict[tuple[Span, ...], list[Gpu]] = {}
    for i, gpu in enumerate(answers.gpus):
        alike.setdefault(answers.spans(grid, i), []).append(gpu)
    return tuple(Line(gpus=tuple(gpus), spans=spans) for spans, gpus in alike.items())


def _refused(refused: Iterable[tuple[str, str]]) -> Mapping[str, tuple[Refused, ...]]:
    """Refused combinations by release, those with one reason together."""
    by_release: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for name, why in refused:
        parts = parse_name(name)
        assert parts is not None, name  # the matrix made it
        by_release.setdefault(parts.release, {}).setdefault(why, []).append((parts.python, parts.base))
    return {
        release: tuple(
            Refused(number=number, pairs=tuple(pairs), why=why)
            for number, (why, pairs) in enumerate(reasons.items(), start=1)
        )
        for release, reasons in by_release.items()
    }
