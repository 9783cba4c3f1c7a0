"""Conditions on what is known beside the words: ``loaded < compiled``, ``tensorflow >= 2.16``, ``known gpu``.

``a in x y z`` compares with texts. A value is a text; two that are numbers with dots are compared as
versions. A condition on something that is not known is not met, except ``unknown NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, str]

_SIDE = r"(?:(?:major|minor)\([a-z][a-z0-9_]*\)|[a-z][a-z0-9_]*|[0-9][0-9.]*)"
_COMPARISON = re.compile(rf"({_SIDE}) (==|!=|<=|>=|<|>) ({_SIDE})")
_MEMBER = re.compile(r"([a-z][a-z0-9_]*) (in|not in) ([A-Za-z0-9_. -]+)")
_KNOWN = re.compile(r"(known|unknown) ([a-z][a-z0-9_]*)")
_VERSION = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})*")
_SUFFIX = re.compile(r"[.+-]?(?:(?:rc|a|b|post|dev)[0-9]+|[a-z0-9.+-]*)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


@dataclass(frozen=True)
class Condition:
    """A condition that was read: ``left`` and ``right`` are names or texts, ``operator`` one of the above."""

    text: str
    operator: str
    left: str
    right: str = ""

    def holds(self, values: Values) -> bool:
        """Whether it is met."""
        if self.operator in ("known", "unknown"):
            return (bool(values.get(self.left))) == (self.operator == "known")
        left = _value(self.left, values)
        if self.operator in ("in", "not in"):
            among = self.right.lower().split()
            return left is not None and (left.lower() in among) == (self.operator == "in")
        right = _value(self.right, values)
        if left is None or right is None:
            return False
        one, other = _key(left), _key(right)
        if one is None or other is None:  # texts have no order
            test = _TESTS.get(self.operator) if self.operator in ("==", "!=") else None
            return test is not None and test(left.lower(), right.lower())
        if self.operator in ("==", "!="):
            size = max(len(one), len(other))
            one, other = one + (0,) * (size - len(one)), other + (0,) * (size - len(other))
        return _TESTS[self.operator](one, other)

    @property
    def names(self) -> frozenset[str]:
        """The names that it asks for."""
        sides = (self.left, self.right) if self.operator in _TESTS else (self.left,)
        bare = (re.sub(r"^(?:major|minor)\((.*)\)$", r"\1", side) for side in sides)
        return frozenset(name for name in bare if _NAME.fullmatch(name))


def parse(text: str) -> Condition:
    """Read a condition.

    Raises:
        ValueError: it is none.
    """
    if found := _KNOWN.fullmatch(text):
        return Condition(text, found[1], found[2])
    if found := _MEMBER.fullmatch(text):
        return Condition(text, found[2], found[1], found[3])
    if found := _COMPARISON.fullmatch(text):
        return Condition(text, found[2], found[1], found[3])
    raise ValueError(f"{text!r} is no condition: write 'a < b', 'a in x y', 'known a' or 'unknown a'")


def _value(side: str, values: Values) -> str | None:
    part, _, rest = side.partition("(")
    if rest:
        known = values.get(rest[:-1])
        key = _key(known) if known else None
        return ".".join(map(str, key[: 1 if part == "major" else 2])) if key else None
    return side if side[0].isdigit() else values.get(side) or None


def _key(value: str) -> tuple[int, ...] | None:
    """A version as numbers; a release's suffix (rc0, .post1) is left out."""
    found = _VERSION.match(value)
    if found is None or not _SUFFIX.fullmatch(value[found.end() :]):
        return None
    return tuple(map(int, found.group().split(".")))
