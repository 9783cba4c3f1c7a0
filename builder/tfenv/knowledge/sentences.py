"""Sentences with places: ``{name}`` is a value, ``[[...]]`` is said where all of its values are known."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_OPTION = re.compile(r"\[\[([^\[\]]*\{[a-z][a-z0-9_]*\}[^\[\]]*)\]\]")
_THREAD = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+)#([0-9]+)")


def fill(template: str, values: Mapping[str, str]) -> str:
    """A sentence with its values; an optional part whose values are not all known is left out."""

    def option(found: re.Match[str]) -> str:
        inside = found.group(1)
        return inside if all(values.get(name) for name in places(inside)) else ""

    def place(found: re.Match[str]) -> str:
        return values.get(found.group(1)) or "?"

    return _PLACE.sub(place, _OPTION.sub(option, template)).replace("  ", " ").strip()


def general(template: str) -> str:
    """A sentence for any text: without optional parts, and with names in place of values."""
    bare = _OPTION.sub("", template)
    return _PLACE.sub(lambda found: f"<{found.group(1).replace('_', ' ')}>", bare).replace("  ", " ").strip()


def places(template: str) -> tuple[str, ...]:
    """The names of all its values, in order."""
    return tuple(_PLACE.findall(template))


def needed(template: str) -> tuple[str, ...]:
    """The names of the values without which it cannot be said."""
    return places(_OPTION.sub("", template))


def is_source(text: str) -> bool:
    """Whether it says where something is known from: an https address, or ``owner/repository#number``."""
    return text.startswith("https://") or _THREAD.fullmatch(text) is not None


def link(source: str) -> str:
    """The address of a source."""
    thread = _THREAD.fullmatch(source)
    return f"https://github.com/{thread[1]}/issues/{thread[2]}" if thread else source
