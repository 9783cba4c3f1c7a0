"""Who asks for what of an environment's packages: the team itself, or one of its extras."""

from __future__ import annotations

from collections.abc import Mapping

from tfenv.model import Environment

from .extras import extras


def requirements(cell: Environment) -> Mapping[str, str]:
    """The extra that asks for each requirement; empty where the team does."""
    return {text: _of(cell, text, debian=False) for text in cell.asked}


def debian(cell: Environment) -> Mapping[str, str]:
    """The extra that asks for each Debian package; empty where the team does."""
    return {name: _of(cell, name, debian=True) for name in cell.apt}


def in_short(cell: Environment) -> str:
    """All that is asked for, as matrix.yaml says it: of extras only their names."""
    own = [
        [text for text, extra in asked.items() if not extra] for asked in (requirements(cell), debian(cell))
    ]
    parts = (("", own[0]), ("Debian: ", own[1]), ("extras: ", cell.extras))
    return "; ".join(head + ", ".join(names) for head, names in parts if names)


def _of(cell: Environment, text: str, *, debian: bool) -> str:
    for name in cell.extras:
        extra = extras()[name]
        if text in (extra.debian(cell) if debian else extra.requirements):
            return name
    return ""
