"""End of life of a cell's Python and of its Debian or Ubuntu: news, since a row cannot choose anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from tfenv.model import Cell
from tfenv.outdated.model import Finding, Subject
from tfenv.outdated.probes import World
from tfenv.versions import order

#: How long before its last day something is worth a word.
SOON = timedelta(days=90)


def end_of_python(subject: Subject, world: World) -> Iterator[Finding]:
    """The cell's Python has no security fixes any more, or soon."""
    cell = subject.cell
    if said := _said(f"Python {cell.python}", world.answers.life.python.get(cell.python), world):
        better = [c.python for c in _siblings(cell, world) if order(c.python) > order(cell.python)]
        yield _finding(cell, "python end of life", said, max(better, key=order, default=""), "Python")


def end_of_system(subject: Subject, world: World) -> Iterator[Finding]:
    """The cell's Debian or Ubuntu has no security updates any more, or soon."""
    cell = subject.cell
    systems = world.answers.life.systems
    if said := _said(cell.base.name, systems.get(cell.base.name), world):
        lives = {name for name, day in systems.items() if day > world.today + SOON}
        better = [c.base.name for c in _siblings(cell, world) if c.base.name in lives]
        yield _finding(cell, "system end of life", said, better[0] if better else "", "base")


def _said(what: str, last_day: object, world: World) -> str:
    from datetime import date

    if not isinstance(last_day, date) or last_day > world.today + SOON:
        return ""
    if last_day < world.today:
        return f"{what} is at its end of life since {last_day}: no more security updates"
    return f"{what} comes to its end of life on {last_day}"


def _siblings(cell: Cell, world: World) -> list[Cell]:
    return [other for other in world.matrix.cells if other.row.tensorflow == cell.row.tensorflow]


def _finding(cell: Cell, kind: str, said: str, better: str, what: str) -> Finding:
    release = cell.row.tensorflow
    return Finding(
        cell=cell.name,
        kind=kind,
        severity="info",
        message=said,
        remedy=f"use TensorFlow {release} with {what} {better}"
        if better
        else f"TensorFlow {release} has no cell with a later {what} here: a newer release has",
    )
