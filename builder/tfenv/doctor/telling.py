"""A verdict as people read it: a line for each layer, the causes with what to do, then what runs here."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .judging import Judged, Verdict
from .rows import Row, Rows, grouped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfenv.compat.model import Verdict as Outcome

    from .findings import Found

_MARKS = {"ok": "✔", "limit": "!", "broken": "✖", "absent": "-", "unknown": "?", "skipped": " "}
_PLAIN = {"ok": "ok", "limit": "! ", "broken": "X ", "absent": "- ", "unknown": "? ", "skipped": "  "}
_ROWS = {"runs": "ok", "limit": "limit", "refused": "broken", "unknown": "unknown"}
_WIDE = 110


def text(verdict: Verdict, rows: Rows, *, why_no_rows: str = "", fancy: bool = True) -> str:
    """All of it.

    Args:
        why_no_rows: said in the place of the rows.
        fancy: whether the reader's terminal knows other characters than ASCII.
    """
    marks = _MARKS if fancy else _PLAIN
    parts = ["\n".join(_layer(layer, marks) for layer in verdict.layers)]
    parts += ["\n".join(_found(one, marks)) for one in verdict.found if one.grade != "note"]
    if notes := [one for one in verdict.found if one.grade == "note"]:
        parts.append("\n".join(line for one in notes for line in _note(one)))
    parts.append("\n".join(_rows(rows, marks)) if rows.rows else why_no_rows)
    parts.append(summary(verdict))
    return "\n\n".join(part for part in parts if part)


def of_cell(
    name: str, of: Outcome, verdict: Verdict, values: Mapping[str, str], *, fancy: bool = True
) -> str:
    """The host, and one cell on it."""
    marks = _MARKS if fancy else _PLAIN
    words = {
        "runs": "runs",
        "limit": "runs, with limits",
        "refused": "does not run",
        "unknown": "cannot tell",
    }
    gpu = values.get("gpus_in_words") or values.get("pci_families")
    where = f"on {gpu}" if gpu else "without a GPU: on the CPU"
    driver = f" with driver {values['driver_version']}" if values.get("driver_version") else ""
    lines = [f"{marks[_ROWS[of.outcome]]} {name} {words[of.outcome]} {where}{driver}"]
    for finding in of.findings:
        lines += _wrapped(f"{finding.message}  [{finding.code}]", "  ", "  ")
        lines += _wrapped(finding.remedy, "  -> ", "     ") if finding.remedy else []
    host = text(verdict, Rows(), fancy=fancy)
    return f"{host}\n\n" + "\n".join(lines)


def summary(verdict: Verdict) -> str:
    """The verdict in one line."""
    first = verdict.found[0] if verdict.found else None
    if verdict.code == 0:
        limits = sum(one.grade == "limit" for one in verdict.found)
        return "ready" + (f", with {limits} limit{'s' if limits > 1 else ''}: see above" if limits else "")
    if verdict.code == 3:
        unknown = [layer.title for layer in verdict.layers if layer.state == "unknown"]
        return f"could not tell: {', '.join(unknown)}"
    assert first
    if verdict.code == 4:
        missing = [one.title for one in verdict.found if one.grade == "absent"]
        return f"nothing is broken: {'; '.join(missing)}"
    others = sum(one.grade == "broken" for one in verdict.found) - 1
    return f"begin with this: {first.title}" + (f" (then {others} more)" if others else "")


def _layer(layer: Judged, marks: dict[str, str]) -> str:
    if layer.state == "skipped":
        told = f"not looked at: {layer.because}"
    elif layer.state in ("broken", "absent"):
        told = layer.found[0].title if layer.found else layer.seen
    elif layer.state == "unknown":
        told = f"cannot tell: {layer.because}"
    else:
        told = layer.seen or "nothing wrong was seen"
    return f"{marks[layer.state]} {layer.title:<16} {told}"


def _found(one: Found, marks: dict[str, str]) -> Iterator[str]:
    mark = marks["broken" if one.grade == "broken" else "absent" if one.grade == "absent" else "limit"]
    yield from _wrapped(f"{one.title}  [{one.id}]", f"{mark} ", "  ")
    yield from _wrapped(one.cause, "  why: ", "       ")
    yield from _wrapped(one.remedy, "  do:  ", "       ")
    yield f"  see: {one.source}"


def _note(one: Found) -> Iterator[str]:
    yield from _wrapped(
        f"{one.title}. {one.remedy[:1].upper()}{one.remedy[1:]}  [{one.id}]", "note: ", "      "
    )


def _wrapped(words: str, first: str, then: str) -> list[str]:
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(words, _WIDE, initial_indent=first, subsequent_indent=then, **options)  # type: ignore[arg-type]


def _rows(rows: Rows, marks: dict[str, str]) -> Iterator[str]:
    names = (f"compute capability {gpu}" if gpu[0].isdigit() else gpu for gpu in rows.gpus)
    where = f"on {', '.join(names)}"
    yield f"TensorFlow {where}" + (
        f" with driver {rows.driver}:" if rows.driver else ", with a driver that is new enough:"
    )
    for group in grouped(rows.rows):
        yield from _group(group, marks)
    if rows.best:
        best = next(row for row in rows.rows if row.tag == rows.best)
        how = (
            "that runs whole" if best.state == "runs" else f"with the fewest limits ({', '.join(best.codes)})"
        )
        verified = f", verified on {best.verified}" if best.verified else ""
        yield f"  best choice: {rows.best}, the newest release {how}{verified}: tfenv up {rows.best}"
    else:
        yield "  none runs: a newer driver, or another GPU, is needed; tfenv explain --gpu NAME says which"
    if rows.needed:
        yield f"  driver to install for it: {rows.needed} or newer"


def _group(group: tuple[Row, ...], marks: dict[str, str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    named = first.tensorflow if len(group) == 1 else f"{last.tensorflow} to {first.tensorflow}"
    mark = marks[_ROWS[first.state]]
    if first.state == "runs":
        yield f"  {mark} {named}"
        return
    example = f" (here {first.tensorflow})" if len(group) > 1 else ""
    for number, why in enumerate(first.why):
        head = f"  {mark} {named}{example}: " if number == 0 else "      "
        yield from _wrapped(why, head, "      ")
    if first.state == "limit":
        for remedy in first.remedies:
            yield from _wrapped(remedy, "      -> ", "         ")
