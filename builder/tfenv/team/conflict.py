"""Why a team's packages cannot stand beside a cell's: who wants what, and what to type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from packaging.requirements import InvalidRequirement, Requirement

from tfenv.errors import UsageError
from tfenv.model import Environment
from tfenv.refusals import project

#: What would be installed with these requirements, version by name; None where nothing can be.
Works = Callable[[tuple[str, ...]], "Mapping[str, str] | None"]
_SEARCHED = 40  # requirements; each costs a run of the resolver
_MARKERS = re.compile(r"\{[^}]*\}")


class ConflictError(UsageError):
    """The team's packages and the cell's exclude each other."""


def explain(cell: Environment, pins: Iterable[str], reason: str, works: Works) -> ConflictError:
    """The error that tells a conflict.

    Args:
        pins: the cell's own packages, ``name==version``.
        reason: what the resolver said.
        works: asks it again.
    """
    told = in_words(reason, pins, cell.start.name)
    core = least(cell.asked, works)
    rest = [text for text in cell.asked if text not in core]
    advice = []
    for text in core:
        others = tuple(rest + [other for other in core if other != text])
        name = project(text)
        found = works((*others, _bare(text)))
        if found and name in found:
            advice.append(f"{name}=={found[name]} (the newest that fits)")
    culprits = ", ".join(core)
    message = f"{cell.name}: {culprits} cannot be installed beside {cell.start.name}:\n{told}"
    if advice:
        remedy = f"ask for {' or '.join(advice)} in place of {culprits}"
    else:
        remedy = f"leave out {culprits}, or extend another cell (see: tfenv explain --requirements FILE)"
    return ConflictError(message, remedy=remedy)


def least(asked: Sequence[str], works: Works) -> tuple[str, ...]:
    """The fewest of these requirements that cannot be met: without any one of them they could."""
    core = list(asked)
    if len(core) > _SEARCHED:
        return tuple(core)
    for text in asked:
        left = [other for other in core if other != text]
        if left and works(tuple(left)) is None:
            core = left
    return tuple(core)


def in_words(reason: str, pins: Iterable[str], cell: str) -> str:
    """The resolver's words, saying of the cell's own packages that they are the cell's."""
    lines = [line.strip() for line in reason.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("error:", "these requirements cannot"))]
    text = _MARKERS.sub("", "\n".join(kept)).replace("cause: ", "")
    for pin in sorted(pins, key=len, reverse=True):
        text = re.sub(
            rf"(?<![\w.-]){re.escape(pin)}(?![\w.]|-\d)(?! \(the cell's\))", f"{pin} (the cell's)", text
        )
    text = text.replace("you require", f"{cell} and you ask for" if "tensorflow==" in text else "you ask for")
    return "\n".join(f"  {line}" for line in text.splitlines())


def _bare(text: str) -> str:
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return project(text)
    return wanted.name + (f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else "")
