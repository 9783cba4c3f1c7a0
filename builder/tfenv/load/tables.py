"""Stress and bench for people: Markdown pages, and the same in a few lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone

from tfenv.progress import clean
from tfenv.report import summary

from .advice import Advice, efficiency
from .charts import base_of
from .judging import Judgement
from .model import Bench, Row, Stress

_WORDS = {"pass": "verified", "fail": "failed", "unverified": "unverified"}


def _cell(text: object) -> str:
    return " ".join(clean(str(text)).split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: Sequence[str], rows: Iterable[Sequence[object]], right: int = 0) -> list[str]:
    """A Markdown table whose last columns, ``right`` of them, are numbers."""
    marks = ["---"] * (len(head) - right) + ["---:"] * right
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(marks) + "|"]
    return lines + ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]


def _top(title: str, named: Mapping[str, str], started: int) -> list[str]:
    day = datetime.fromtimestamp(started / 1000, timezone.utc)
    lines = [f"# {title}", "", *(f"- {name}: {_cell(value)}" for name, value in named.items() if value)]
    return [*lines, f"- date: {day:%Y-%m-%d}", ""]


def words(judged: Judgement) -> str:
    """The verdict as people say it."""
    said = _WORDS[judged.verdict]
    return f"{said}: {judged.reason}" if judged.reason else said


def minutes(number: float) -> str:
    """``1 minute``, ``0.5 minutes``."""
    return f"{number:g} minute{'' if number == 1 else 's'}"


def whole(value: object) -> str:
    """A figure without what stands behind its point; a dash where there is none."""
    return f"{value:.0f}" if isinstance(value, (int, float)) else "-"


def stress_page(run: Stress, judged: Judgement, named: Mapping[str, str]) -> str:
    """The page of a stress, with its chart."""
    lines = _top(f"Stress of {minutes(run.minutes)}: {_cell(words(judged))}", named, run.started)
    lines += ["![temperature, power, clock and speed over time](stress.svg)", ""]
    rows = []
    for check in judged.checks:
        status = "**fail**" if check.status == "fail" else check.status.replace("-", " ")
        rows.append((check.name, status, check.reason or summary(check)))
    lines += table(("check", "result", ""), rows)
    cooling = next((dict(check.facts) for check in judged.checks if check.name == "cooling"), {})
    shown = ("celsius_max", "watts_median", "watts_max", "sm_mhz_median", "sm_mhz_min")
    if cooling:
        head = ("under load", "°C, highest", "W, median", "W, highest", "MHz, median", "MHz, lowest")
        under = [(name, *(whole(facts.get(key)) for key in shown)) for name, facts in cooling.items()]
        lines += ["", *table(head, under, 5)]
    steady = next((dict(check.facts) for check in judged.checks if check.name == "steady"), {})
    for precision, speeds in (steady.get("tflops") or {}).items():
        said = ", ".join(f"GPU {gpu} {speed:g}" for gpu, speed in speeds.items())
        lines += [
            "",
            f"{precision}, matrices of {run.size}: {said} TFLOP/s (with the comparison of each product).",
        ]
    for check in judged.checks:
        for finding in check.findings:
            lines += ["", f"**{finding.severity}** ({check.name}): {_cell(finding.message)}"]
            if finding.evidence:
                lines += ["", *(f"    {line}" for line in clean(finding.evidence).splitlines())]
            if finding.remedy:
                lines += ["", f"Remedy: {_cell(finding.remedy)}"]
    return "\n".join(lines) + "\n"


_HEAD = (
    "configuration",
    "GPUs",
    "all-reduce",
    "median /s",
    "spread",
    "x default",
    "of N times one",
    "first step s",
    "GiB",
)


def bench_row(row: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns of a row; one without figures says why."""
    name = row.words.split(", ")[0]
    if row.status != "ok":
        why = {"left-out": "left out"}.get(row.status, row.status)
        return (name, str(row.gpus), row.reduction, why, row.why, "", "", "", "")
    unit = base_of([one for one in rows if one.model == row.model])
    share = efficiency(row, rows) if row.gpus > 1 else None
    return (
        name,
        str(row.gpus),
        row.reduction,
        f"{row.throughput:.0f}",
        f"{row.low:.0f} to {row.high:.0f}",
        f"{row.throughput / unit.throughput:.2f}" if unit else "",
        f"{share:.0%}" if share is not None else "",
        f"{row.first_step:.1f}",
        f"{row.memory / 2**30:.1f}" if row.memory else "",
    )


def bench_page(run: Bench, advice: Sequence[Advice], named: Mapping[str, str]) -> str:
    """The page of a bench: advice, chart, tables."""
    lines = _top("Bench of training", named, run.started)
    if run.why:
        lines += [f"Not run to its end: {_cell(run.why)}", ""]
    lines += ["## Advice", ""]
    for one in advice:
        lines += [f"- {_cell(one.text)}", *(f"  - `{line}`" for line in one.code)]
    lines += [] if advice else ["None: nothing was measured."]
    lines += ["", "![speed-up by number of GPUs](bench.svg)"]
    for model in dict.fromkeys(row.model for row in run.rows):
        rows = [row for row in run.rows if row.model == model]
        some = next((row for row in rows if row.status == "ok"), None)
        if some is None:
            said = ""
        else:
            how = f"median of {some.repeats} repeats, data on the GPU, {some.batch} examples on each"
            said = f": {some.unit}, {how}"
        lines += ["", f"## {model}{said}", "", *table(_HEAD, [bench_row(row, rows) for row in rows], 6)]
    if any(row.lanes > 1 for row in run.rows):
        lines += ["", "Configurations of one GPU were measured at the same time, each on a GPU of its own."]
    return "\n".join(lines) + "\n"


def bench_text(run: Bench, advice: Sequence[Advice]) -> str:
    """The table and the advice for a terminal."""
    lines = []
    for model in dict.fromkeys(row.model for row in run.rows):
        rows = [row for row in run.rows if row.model == model]
        cells = [_HEAD, *(bench_row(row, rows) for row in rows)]
        widths = [max(len(row[n]) for row in cells) for n in range(len(_HEAD))]
        lines.append(model)
        lines += [
            "  " + "  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
    for one in advice:
        lines += [f"* {one.text}", *(f"    {line}" for line in one.code)]
    return "\n".join(lines)
