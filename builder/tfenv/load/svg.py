"""Charts as SVG, without a library: lines over axes with units, readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from tfenv.report import xml_text

_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT, _BOTTOM = 760, 70, 20, 34, 130, 40
_KEY = 18  # height of a line of the key
# Okabe and Ito's colours, which the colour-blind tell apart; they hold on white and on black.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6fd1", "#7f7f7f")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
_STYLE = """
svg { background: #ffffff; font: 12px sans-serif; }
text { fill: #1f2328; } .grid { stroke: #d0d7de; } .axis { stroke: #57606a; }
.limit { stroke: #cf222e; stroke-dasharray: 5 4; } .limit-text { fill: #cf222e; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; } text { fill: #e6edf3; } .grid { stroke: #30363d; } .axis { stroke: #8b949e; }
.limit { stroke: #ff7b72; } .limit-text { fill: #ff7b72; }
}
"""

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """A named line; ``marks`` draws its points too."""

    name: str
    points: tuple[Point, ...]
    marks: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Limit:
    """A level that matters, e.g. where a GPU slows down."""

    name: str
    y: float


@dataclass(frozen=True)
class Panel:
    """Lines over one pair of axes.

    Args:
        unit: of the y axis. zero: whether the y axis begins at 0.
    """

    title: str
    unit: str
    lines: tuple[Line, ...]
    limits: tuple[Limit, ...] = ()
    zero: bool = False


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from at or below ``low`` to at or above ``high``, at most ``most`` + 2 of them."""
    span = (high - low) or max(abs(high), 1.0)
    step = 10.0 ** math.floor(math.log10(span / most))
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(n * step, 10) for n in range(first, max(last, first + 1) + 1)]


def number(value: float) -> str:
    """Short: no decimals that are zero."""
    return f"{value:.10g}"


def chart(title: str, x_title: str, panels: Sequence[Panel], *, whole_x: bool = False) -> str:
    """The panels below one another over the same x axis.

    Args:
        x_title: with the unit. whole_x: only whole numbers on the x axis.
    """
    panels = [panel for panel in panels if any(line.points for line in panel.lines)]
    xs = [x for panel in panels for line in panel.lines for x, _ in line.points]
    if not xs:
        return _document(title, 60, [_text(_WIDTH / 2, 40, "nothing was measured", "middle")])
    x_ticks = ticks(min(xs), max(xs), 8)
    if whole_x:
        x_ticks = [float(x) for x in range(math.floor(min(xs)), math.ceil(max(xs)) + 1)]
    parts = []
    top = 28.0
    for panel in panels:
        drawn, height = _panel(panel, top, x_ticks, x_title)
        parts += drawn
        top += height
    return _document(title, top + 6, [_text(_WIDTH / 2, 18, title, "middle", bold=True), *parts])


def _document(title: str, height: float, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {_WIDTH} {number(height)}" width="{_WIDTH}" height="{number(height)}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(xml_text(title))}>'
    )
    return "\n".join(
        [head, f"<title>{escape(xml_text(title))}</title>", f"<style>{_STYLE}</style>", *parts, "</svg>", ""]
    )


def _panel(panel: Panel, top: float, x_ticks: list[float], x_title: str) -> tuple[list[str], float]:
    ys = [y for line in panel.lines for _, y in line.points] + [limit.y for limit in panel.limits]
    y_ticks = ticks(min([*ys, 0.0] if panel.zero else ys), max(ys))
    above, below = top + _TOP, top + _TOP + _HEIGHT
    right = _WIDTH - _RIGHT

    def across(x: float) -> float:
        span = (x_ticks[-1] - x_ticks[0]) or 1.0
        return round(_LEFT + (x - x_ticks[0]) / span * (right - _LEFT), 1)

    def up(y: float) -> float:
        return round(below - (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]) * _HEIGHT, 1)

    parts = [_text(_LEFT, top + 22, f"{panel.title} ({panel.unit})", bold=True)]
    for y in y_ticks:
        parts += [_rule("grid", _LEFT, up(y), right, up(y)), _text(_LEFT - 6, up(y) + 4, number(y), "end")]
    for x in x_ticks:
        parts += [_rule("axis", across(x), below, across(x), below + 4)]
        parts += [_text(across(x), below + 17, number(x), "middle")]
    parts += [_rule("axis", _LEFT, below, right, below), _rule("axis", _LEFT, above, _LEFT, below)]
    parts.append(_text(right, below + 32, x_title, "end"))
    for limit in panel.limits:
        parts.append(_rule("limit", _LEFT, up(limit.y), right, up(limit.y)))
        parts.append(_text(right - 4, up(limit.y) - 4, limit.name, "end", kind="limit-text"))
    for n, line in enumerate(panel.lines):
        parts += _line(line, n, [(across(x), up(y)) for x, y in line.points])
    for n, line in enumerate(panel.lines):
        parts += _key(line, n, _LEFT, below + _BOTTOM + n * _KEY)
    return parts, _TOP + _HEIGHT + _BOTTOM + len(panel.lines) * _KEY


def _look(line: Line, n: int) -> str:
    dash = "4 4" if line.dashed else _DASHES[n // len(_COLOURS) % len(_DASHES)]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{_COLOURS[n % len(_COLOURS)]}" stroke-width="2" fill="none"{dashes}'


def _line(line: Line, n: int, points: list[Point]) -> list[str]:
    if not points:
        return []
    path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    drawn = [f'<polyline points="{path}" {_look(line, n)}/>']
    if line.marks or len(points) == 1:
        fill = _COLOURS[n % len(_COLOURS)]
        drawn += [f'<circle cx="{number(x)}" cy="{number(y)}" r="3.5" fill="{fill}"/>' for x, y in points]
    return drawn


def _key(line: Line, n: int, x: float, y: float) -> list[str]:
    sample = f'<line x1="{x}" y1="{number(y - 4)}" x2="{x + 26}" y2="{number(y - 4)}" {_look(line, n)}/>'
    return [sample, _text(x + 32, y, line.name)]


def _rule(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    ends = (number(value) for value in (x1, y1, x2, y2))
    return '<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>'.format(kind, *ends)


def _text(x: float, y: float, text: str, anchor: str = "start", *, bold: bool = False, kind: str = "") -> str:
    weight = ' font-weight="bold"' if bold else ""
    name = f' class="{kind}"' if kind else ""
    shown = escape(xml_text(text))
    return f'<text{name} x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"{weight}>{shown}</text>'
