"""End of life of a cell's Python and of its Debian or Ubuntu: news, since a row cannot choose anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta

from tfenv.model import Cell
from tfenv.outdated.model import Finding, Subject
from tfenv.outdated.probes import World
from tfenv.versions import order

#: How long before its last day something is worth a word.
SOON = timedelta(days=90)


def end_of_python(subject: Subject, world: World) -> Iterator[Finding]:
    """The cell's Python has no security fixes any more, or soon."""
    cell = subject.cell
    pythons = world.answers.life.python
    if said := _said(f"Python {cell.python}", pythons.get(cell.python), world):
        better = [c.python for c in _siblings(cell, world) if c.python in _alive(pythons, world)]
        yield _finding(cell, "python end of life", said, max(better, key=order, default=""), "Python")


def end_of_system(subject: Subject, world: World) -> Iterator[Finding]:
    """The cell's Debian or Ubuntu has no security updates any more, or soon."""
    cell = subject.cell
    systems = world.answers.life.systems
    if said := _said(cell.base.name, systems.get(cell.base.name), world):
        better = [c.base.name for c in _siblings(cell, world) if c.base.name in _alive(systems, world)]
        yield _finding(cell, "system end of life", said, better[0] if better else "", "base")


def _said(what: str, last_day: date | None, world: World) -> str:
    if last_day is None or last_day > world.today + SOON:
        return ""
    if last_day < world.today:
        return f"{what} is at its end of life since {last_day}: no more security updates"
    return f"{what} comes to its end of life on {last_day}"


def _alive(last_days: Mapping[str, date], world: World) -> set[str]:
    return {name for name, day in last_days.items() if day > world.today + SOON}


def _siblings(cell: Cell, world: World) -> list[Cell]:
    return [other for other in world.matrix.cells if other.row.tensorflow == cell.row.tensorflow]


def _finding(cell: Cell, kind: str, said: str, better: str, what: str) -> Finding:
    return Finding(
        cell=cell.name,
        kind=kind,
        severity="info",
        message=said,
        remedy=f"use the same release with {what} {better}"
        if better
        else f"use a newer release: this one has no cell with a later {what} that lives on",
    )
