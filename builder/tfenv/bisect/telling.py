"""A result for people, as data, and as files that a team can use."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tfenv.bisect.model import PinSet
from tfenv.bisect.question import Question
from tfenv.bisect.result import Culprit, Result
from tfenv.console import duration
from tfenv.files import write_all

LAST_GOOD, FIRST_BAD, CURED, LINES = "last-good.txt", "first-bad.txt", "cured.txt", "constraints.txt"


def write_files(result: Result, folder: Path) -> dict[str, Path]:
    """Write the sets of pins and the constraints into the bisection's folder; name -> path."""
    sets: dict[str, tuple[str, PinSet | None]] = {
        LAST_GOOD: ("the last set of packages with which the command passes", result.last_good),
        FIRST_BAD: ("the first one with which it fails", result.first_bad),
        CURED: (
            "the bad end without what broke it: the command passes",
            result.cured if result.cure == "good" else None,
        ),
    }
    files = {name: pins.requirements(about) for name, (about, pins) in sets.items() if pins is not None}
    if result.lines:
        files[LINES] = "\n".join(result.lines) + "\n"
    write_all(folder, files)
    return {name: folder / name for name in files}


def plain(result: Result, question: Question, folder: Path) -> dict[str, Any]:
    """As data for JSON."""

    def pins(of: PinSet | None) -> list[str] | None:
        return None if of is None else [pin.key for pin in of.pins]

    return {
        "good": question.good.label,
        "bad": question.bad.label,
        "command": list(question.command),
        "culprits": [_culprit_plain(culprit, folder) for culprit in result.culprits],
        "exact": result.exact,
        "constraints": list(result.lines),
        "constraints_tested": result.cure or None,
        "last_good": pins(result.last_good),
        "first_bad": pins(result.first_bad),
        "cured": pins(result.cured),
        "counts": asdict(result.counts),
        "folder": str(folder),
    }


def text(result: Result, question: Question, files: dict[str, Path], folder: Path) -> str:
    """For people: the culprit first, then what keeps it out, then what it took."""
    out: list[str] = []
    for number, culprit in enumerate(result.culprits):
        out += [*_culprit(culprit, again=number > 0), *_log(culprit, folder), ""]
    out += [*_cure(result, question), ""]
    out.append(f"last good lock: {files[LAST_GOOD]}")
    if CURED in files:
        out.append(f"the newest that passes: {files[CURED]}")
    counts = result.counts
    out.append(
        f"candidates: {counts.candidates}, asked: {counts.asked} (halving: {counts.bound}), "
        f"built: {counts.builds}, skipped: {counts.skipped}, in {duration(counts.seconds)}"
    )
    return "\n".join(out)


def _culprit(culprit: Culprit, *, again: bool) -> list[str]:
    head = "then also" if again else "the culprit"
    names = [str(change) for change in culprit.changes]
    if len(names) == 1:
        lines = [f"{head}: {names[0]}"]
    elif culprit.exact:
        lines = [f"{head}: these together; no part of them fails alone, or fits without the rest:"]
        lines += [f"  {name}" for name in names]
    else:
        lines = [f"{head} is among these; what lies between could not be judged:"]
        lines += [f"  {name}" for name in names]
    if culprit.along:
        lines.append(f"  with what that needs: {', '.join(map(str, culprit.along))}")
    if culprit.since:
        lines.append(f"  good until {_day(culprit.after)}, bad from {_day(culprit.since)}")
    if culprit.why:
        lines.append(f"  {culprit.why}")
    return lines


def _log(culprit: Culprit, folder: Path) -> list[str]:
    return [f"  its output: {folder / culprit.log}"] if culprit.log else []


def _cure(result: Result, question: Question) -> list[str]:
    if not result.lines:
        return ["no line of a requirements file keeps that out: take it out of what you ask for"]
    tested = {
        "good": "with it the bad end passes (tested)" if len(result.lines) == 1 else "tested: so it passes",
        "bad": "that is not enough: the command still fails with it",
        "skip": "whether that is enough could not be judged",
    }
    out = ["keep it out with:", "", *(f"    {line}" for line in result.lines), ""]
    others = [" and ".join(one) for culprit in result.culprits for one in culprit.keep_out[1:]]
    if others:
        out.append(f"or, instead, with one of: {'; '.join(others)}")
    out.append(f"{_place(question)}; {tested.get(result.cure, 'not tested')}")
    return out


def _place(question: Question) -> str:
    kind, label = question.asked_by
    if kind == "cell":
        return (
            f"paste it as an entry of `requirements:` of {label} (a cell: of its row) in matrix.yaml, then "
            f"type: tfenv lock {label} --upgrade wheels"
        )
    if kind == "file":
        return f"paste it into {label}"
    return "paste it into the requirements that these were resolved from, or a file for pip's -c"


def _culprit_plain(culprit: Culprit, folder: Path) -> dict[str, Any]:
    def change(of: Any) -> dict[str, Any]:
        return {
            "name": of.name,
            "before": of.before.version if of.before else None,
            "after": of.after.version if of.after else None,
        }

    return {
        "changes": [change(one) for one in culprit.changes],
        "needs": [change(one) for one in culprit.along],
        "exact": culprit.exact,
        "good_until": culprit.after or None,
        "bad_since": culprit.since or None,
        "keep_out": [list(lines) for lines in culprit.keep_out],
        "why": culprit.why,
        "log": str(folder / culprit.log) if culprit.log else None,
    }


def _day(when: str) -> str:
    return when.replace("T", " ").removesuffix("Z")
