"""Ready-made additions to a team's environment, from a data file: what each asks for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tfenv.model import Cell


@dataclass(frozen=True, kw_only=True)
class Extra:
    """One addition.

    Args:
        what: what it is for, in words.
        requirements, apt: what it asks for; ``apt_of_own_python``: beside it where the base brings the
            Python, with ``{python}`` for its version.
        development: compilers and headers stay in the image.
        note: what to tell whoever takes it; may be empty.
    """

    what: str
    requirements: tuple[str, ...]
    apt: tuple[str, ...]
    apt_of_own_python: tuple[str, ...]
    development: bool
    note: str

    def debian(self, cell: Cell) -> tuple[str, ...]:
        """The Debian packages that it asks for on a cell."""
        own = self.apt_of_own_python if cell.base.brings(cell.python) else ()
        return (*self.apt, *(name.format(python=cell.python) for name in own))


@cache
def extras() -> dict[str, Extra]:
    """All additions, by name."""
    told = json.loads(Path(__file__).with_name("extras.json").read_text("utf-8"))
    return {
        name: Extra(
            what=one["what"],
            requirements=tuple(one["requirements"]),
            apt=tuple(one["apt"]),
            apt_of_own_python=tuple(one["apt_of_own_python"]),
            development=one["development"],
            note=one["note"],
        )
        for name, one in told.items()
    }
