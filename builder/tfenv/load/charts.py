"""The charts of stress and bench."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .model import Bench, Row, Sample, Stress
from .svg import Limit, Line, Panel, Point, chart


def stress_chart(run: Stress, title: str) -> str:
    """Temperature, power, clock and speed of every GPU over time, as SVG."""
    indexes = sorted({s.gpu for s in run.samples} | {p.gpu for p in run.progress})
    names = {gpu.index: gpu.name for gpu in run.gpus}
    label = {n: f"GPU {n} {names.get(n, '')}".strip() for n in indexes}

    def lines(take: Callable[[Sample], float | None], name: str = "") -> tuple[Line, ...]:
        made = []
        for n in indexes:
            values = [(s.t, take(s)) for s in run.samples if s.gpu == n]
            points: tuple[Point, ...] = tuple((t, v) for t, v in values if v is not None)
            made.append(Line(f"{label[n]}{name}", points))
        return tuple(line for line in made if line.points)

    memory = lines(lambda s: s.memory_celsius, ", memory")
    speeds = [
        Line(
            f"{label[n]}, {precision}",
            tuple((p.t, p.tflops) for p in run.progress if (p.gpu, p.precision) == (n, precision)),
        )
        for n in indexes
        for precision in sorted({p.precision for p in run.progress})
    ]
    panels = [
        Panel(
            "temperature",
            "°C",
            (*lines(lambda s: s.celsius), *memory),
            tuple(_limits("slows down", (g.slowdown_celsius for g in run.gpus))),
        ),
        Panel(
            "power",
            "W",
            lines(lambda s: s.watts),
            tuple(_limits("limit", (g.limit_watts for g in run.gpus))),
            True,
        ),
        Panel("clock of the cores", "MHz", lines(lambda s: s.sm_mhz), zero=True),
        Panel("matrix products", "TFLOP/s", tuple(speeds), zero=True),
    ]
    return chart(title, "seconds", panels)


def _limits(name: str, levels: Iterable[float | None]) -> list[Limit]:
    return [Limit(name, level) for level in sorted({level for level in levels if level})]


def speedup_chart(bench: Bench, title: str) -> str:
    """Speed over that of one GPU in float32 with TF32 and without XLA, by number of GPUs, as SVG."""
    panels = []
    for model in dict.fromkeys(row.model for row in bench.rows):
        rows = [row for row in bench.rows if row.model == model and row.status == "ok"]
        unit = base_of(rows)
        if unit is None:
            continue
        most = max(row.gpus for row in rows)
        lines = [
            Line(name, tuple((float(n), value / unit.throughput) for n, value in points), marks=True)
            for name, points in curves(rows)
        ]
        ideal = Line(
            "as many times one GPU", tuple((float(n), float(n)) for n in range(1, most + 1)), dashed=True
        )
        basis = f"{model}: times {unit.throughput:.0f} {unit.unit}, one GPU, {unit.words}"
        panels.append(Panel(basis, "speed-up", (*lines, *((ideal,) if most > 1 else ())), zero=True))
    return chart(title, "GPUs", panels, whole_x=True)


def base_of(rows: list[Row]) -> Row | None:
    """What the others are compared with: TensorFlow's default on one GPU, else the slowest there."""
    singles = [row for row in rows if row.gpus == 1 and row.status == "ok"]
    usual = [row for row in singles if row.precision == "tf32" and not row.xla]
    return usual[0] if usual else min(singles, key=lambda row: row.throughput, default=None)


def curves(rows: list[Row]) -> list[tuple[str, list[tuple[int, float]]]]:
    """By precision, XLA and reduction the throughput by number of GPUs, from one GPU on."""
    found = []
    for key in dict.fromkeys((row.precision, row.xla) for row in rows):
        same = [row for row in rows if (row.precision, row.xla) == key]
        one = [(1, row.throughput) for row in same if row.gpus == 1]
        name = next(row.words for row in same).split(", ")[0]
        reductions = dict.fromkeys(row.reduction for row in same if row.gpus > 1)
        if not reductions:
            found.append((name, one))
        for reduction in reductions:
            more = sorted(
                (row.gpus, row.throughput) for row in same if row.reduction == reduction and row.gpus > 1
            )
            found.append((f"{name}, {reduction}", one + more))
    return found
