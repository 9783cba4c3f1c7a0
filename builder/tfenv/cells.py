"""From what a user types to the one cell that is meant."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import UsageError
from .tags import owners
from .versions import agrees

if TYPE_CHECKING:
    from .model import Cell, Matrix

_NAME = re.compile(
    r"(?!-)(?P<release>[0-9]+(?:\.[0-9]+)*(?:(?:rc|\.post)[0-9]+)?|latest)?"
    r"(?:(?:^|-)cu(?P<cuda>[0-9.]+))?(?:(?:^|-)cudnn(?P<cudnn>[0-9.]+))?"
    r"(?:(?:^|-)py(?P<python>[0-9.]+))?(?:(?:^|-)(?P<base>[a-z]{3,}[0-9][0-9.]*))?"
    r"(?:-(?P<day>[0-9]{8}))?",
    re.ASCII,
)
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Name:
    """The parts that a cell's name or alias gives; an empty one matches anything."""

    release: str = ""
    cuda: str = ""
    cudnn: str = ""
    python: str = ""
    base: str = ""
    day: str = ""

    def fits(self, other: Name) -> bool:
        """Whether a full name agrees with all that this one gives, as far as it goes."""
        pairs = (
            ("" if self.release == "latest" else self.release, other.release),
            (self.cuda, other.cuda),
            (self.cudnn, other.cudnn),
        )
        return (
            all(not mine or agrees(mine, theirs) for mine, theirs in pairs)
            and self.python in ("", other.python)
            and self.base in ("", other.base)
        )


def parse_name(name: str) -> Name | None:
    """The parts of a name such as ``2.15-cu12-py3.11-debian12``; None if it is not one."""
    match = _NAME.fullmatch(name)
    if not name or match is None:
        return None
    return Name(**{part: value or "" for part, value in match.groupdict().items()})


def resolve(matrix: Matrix, name: str) -> Cell:
    """The cell that a canonical name or an alias means; a leading ``tfenv:`` is allowed.

    Raises:
        UsageError: no cell has that name; it says why a known combination is refused, which cells
            would fit, and the nearest names.
    """
    bare = name.strip()
    for prefix in (f"{matrix.repository}:", "tfenv:"):
        bare = bare.removeprefix(prefix)
    names = {**owners(matrix), **{own.name: own for own in matrix.environments}}
    if bare in names:
        return names[bare]
    shown = repr(name if len(name) <= 80 else name[:77] + "...")
    asked = parse_name(bare)
    if asked is not None and not asked.day:
        if fitting := [cell.name for cell in matrix.cells if _fits(asked, cell.name)]:
            raise UsageError(
                f"no cell is called {shown}; it could mean {_some(fitting)}",
                remedy="give one of these names, or list all: tfenv list",
            )
        if refused := [f"\n  {full}: {why}" for full, why in matrix.refused if _fits(asked, full)]:
            raise UsageError(f"{shown} is refused:{''.join(refused[:_SHOWN])}", remedy=_remedy(bare, names))
    raise UsageError(f"no cell is called {shown}", remedy=_remedy(bare, names))


def _fits(asked: Name, full: str) -> bool:
    parts = parse_name(full)
    return parts is not None and asked.fits(parts)


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _remedy(bare: str, names: dict[str, Cell]) -> str:
    near = difflib.get_close_matches(bare[:200], sorted(names), n=_SHOWN, cutoff=0.4)
    if not near:
        return "see what there is: tfenv list"
    return f"the nearest names: {', '.join(near)}; all of them: tfenv list"
