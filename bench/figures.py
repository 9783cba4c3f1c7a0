"""A figure: what was measured, by which command, against which target; and the table of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the table.

    Args:
        value: in ``unit``; samples: the single measurements in the same unit, in the order taken.
        target: the largest value that is good enough; None where there is none.
        command: what was timed or read, as typed.
    """

    name: str
    value: float
    unit: str
    command: str
    target: float | None = None
    samples: tuple[float, ...] = field(default=())

    @property
    def met(self) -> bool | None:
        """Whether the target is met, judged on the value as measured, not as rounded."""
        return None if self.target is None else self.value <= self.target

    def as_json(self) -> dict[str, Any]:
        """For the report."""
        return asdict(self) | {"met": self.met}


def middle(name: str, samples: Sequence[float], **rest: Any) -> Figure:
    """The median of some seconds."""
    return Figure(name=name, value=median(samples), samples=tuple(samples), unit="s", **rest)


def ratio(name: str, ours: Figure, theirs: Figure, target: float | None = None) -> Figure:
    """How much of theirs ours is."""
    return Figure(
        name=name,
        value=ours.value / theirs.value,
        unit="",
        target=target,
        command=f"({ours.name}) / ({theirs.name})",
    )


def shown(value: float, unit: str) -> str:
    """A number for people: 3 digits, and never rounded across its neighbours' unit."""
    if unit == "bytes":
        return f"{value / 1e6:,.0f} MB"
    if unit == "s" and value < 10:
        return f"{value * 1000:.0f} ms"
    if unit == "s":
        return f"{value:.0f} s"
    return f"{value:.3f}"


def table(figures: Sequence[Figure]) -> str:
    """All figures as a Markdown table."""
    lines = ["| what | measured | target | | how |", "|---|---:|---:|---|---|"]
    for figure in figures:
        target = "" if figure.target is None else f"<= {shown(figure.target, figure.unit)}"
        verdict = {None: "", True: "met", False: "**missed**"}[figure.met]
        count = f" (median of {len(figure.samples)})" if len(figure.samples) > 1 else ""
        how = f"`{figure.command}`{count}"
        lines.append(f"| {figure.name} | {shown(figure.value, figure.unit)} | {target} | {verdict} | {how} |")
    return "\n".join(lines) + "\n"
