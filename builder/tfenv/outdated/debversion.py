"""Debian's own order of package versions: deb-version(7)."""

from __future__ import annotations

import re
from functools import cmp_to_key
from itertools import zip_longest

_PARTS = re.compile(r"([^0-9]*)([0-9]*)")


def compare(a: str, b: str) -> int:
    """-1, 0 or 1 as version ``a`` is older than, the same as or newer than ``b``."""
    for mine, theirs in zip(_split(a), _split(b), strict=True):
        if order := _compare_part(mine, theirs):
            return order
    return 0


#: The sort key of a version such as ``1:2.36-9+deb12u10``.
order = cmp_to_key(compare)


def _split(version: str) -> tuple[str, str, str]:
    """Epoch, upstream version, revision."""
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, _, revision = rest.rpartition("-")
    return (epoch, upstream, revision) if upstream else (epoch, revision, "0")


def _compare_part(a: str, b: str) -> int:
    pairs = zip_longest(_PARTS.findall(a), _PARTS.findall(b), fillvalue=("", ""))
    for (text_a, number_a), (text_b, number_b) in pairs:
        for mine, theirs in (
            (_weights(text_a), _weights(text_b)),
            ([int(number_a or 0)], [int(number_b or 0)]),
        ):
            if mine != theirs:
                return -1 if mine < theirs else 1
    return 0


def _weights(text: str) -> list[int]:
    """``~`` sorts before the end of a text, letters before everything else."""
    weights = [-1 if c == "~" else ord(c) if c.isalpha() else ord(c) + 256 for c in text]
    return [*weights, 0]
