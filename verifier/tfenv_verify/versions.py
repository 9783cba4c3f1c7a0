"""Version numbers as tuples of integers, compared as far as both sides say something."""

from __future__ import annotations

import re


def numbers(version: str) -> tuple[int, ...]:
    """The leading dotted integers: ``'2.15.0.post1'`` gives ``(2, 15, 0)``, ``'x'`` gives ``()``."""
    match = re.match(r"\s*v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def text(version: tuple[int, ...]) -> str:
    """``(12, 2)`` as ``'12.2'``."""
    return ".".join(str(part) for part in version)


def agree(one: str, other: str) -> bool:
    """Whether both are equal as far as the shorter one goes: ``12.2.5`` agrees with ``12.2.5.6``."""
    a, b = numbers(one), numbers(other)
    shared = min(len(a), len(b))
    return shared > 0 and a[:shared] == b[:shared]


def major_minor(version: str) -> tuple[int, ...]:
    """The first two numbers, or fewer where the version has fewer."""
    return numbers(version)[:2]
