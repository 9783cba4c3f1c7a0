"""The short form of the page, for a README: one line for each release."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tfenv.errors import UsageError
from tfenv.model import Environment
from tfenv.team.asking import in_short
from tfenv.versions import order

from .collect import Entry, Page, Release
from .evidence import Kind
from .words import LIMITED, STANDINGS

BEGIN = "<!-- the matrix: written by `tfenv page`, do not edit -->"
END = "<!-- end of the matrix -->"
NONE = "-"


def to_markdown(page: Page, link: str, picture: str | None = None) -> str:
    """The table, the way to the page and its picture.

    Args:
        link: address of the page from where the table is. picture: the same of a screenshot.
    """
    lines = [
        "| TensorFlow | CUDA and cuDNN | Python | bases | environments |",
        "|---|---|---|---|---|",
        *(_line(release) for release in page.releases),
        "",
        *_own(page),
        f"[Which GPU and driver run each of them, with which limits, and why others do not]({link}).",
    ]
    if picture:
        lines += ["", f"[![The matrix page with a GPU and a driver picked]({picture})]({link})"]
    return "\n".join(lines) + "\n"


def _own(page: Page) -> list[str]:
    if not page.own:
        return []
    lines = ["| environment of this repository | stands on | adds | state |", "|---|---|---|---|"]
    for entry in page.own:
        if isinstance(entry.cell, Environment):
            # In a code span nothing but a bar and a backtick has a meaning, and a requirement has neither.
            state = "; ".join(said.replace(" 1 ", " ", 1) for said in _state([entry]))
            told = f"**{entry.cell.name}** | {entry.cell.start.name} | `{in_short(entry.cell)}` | {state}"
            lines.append(f"| {told} |")
    return [*lines, ""]


def _line(release: Release) -> str:
    cells = [entry.cell for entry in release.entries]
    sets = ", ".join(release.sets) or NONE
    held = {cell.base.name for cell in cells}
    bases = ", ".join(base for base in release.bases if base in held) or NONE
    return (
        f"| **{release.tensorflow}** | {sets} | {_pythons([cell.python for cell in cells])} | {bases} "
        f"| {_standing(release)} |"
    )


def _pythons(pythons: Sequence[str]) -> str:
    return ", ".join(sorted(set(pythons), key=order)) or NONE


def _standing(release: Release) -> str:
    refused = [f"✖ {sum(len(of.pairs) for of in release.refused)} refused"] if release.refused else []
    return "; ".join([*_state(release.entries), *refused])


def _state(entries: Sequence[Entry]) -> list[str]:
    """How many cells have come how far, and on which GPUs."""
    number: Counter[Kind] = Counter(entry.standing.kind for entry in entries)
    gpus = dict.fromkeys(
        name
        for entry in entries
        if entry.standing.kind == "verified"
        for proof in entry.standing.proofs
        if proof.decides
        for name in proof.names
    )
    said = []
    for kind, sign in STANDINGS.items():
        if number[kind]:
            on = f" on {', '.join(map(_plain, gpus))}" if kind == "verified" else ""
            said.append(f"{sign.sign} {number[kind]} {sign.words}{on}")
    limited = sum(entry.general.state == "limited" for entry in entries)
    if limited:
        said.append(f"{LIMITED.sign} {limited} {LIMITED.words}")
    return said


def _plain(name: str) -> str:
    """A name from a report, without what Markdown, or a table of it, would take for its own."""
    return re.sub(r"[^\w .()/+-]", "", " ".join(name.split()))[:80]


def replace_between(text: str, table: str) -> str:
    """``text`` with ``table`` between its markers.

    Raises:
        UsageError: a marker is missing, there twice, or they are in the wrong order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise UsageError(
            "the markers of the matrix's table are not there once each, in order",
            remedy=f"put these two lines where the table belongs:\n{BEGIN}\n{END}",
        )
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.split(END)[1]}"
