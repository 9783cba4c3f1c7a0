"""One move of a name, as it is written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FORMAT = 1
#: ``moved`` by a build, ``found`` to mean something that tfenv did not write down, ``rolled back`` and
#: thereby held, ``released`` from that.
Kind = Literal["moved", "found", "rolled back", "released"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of the history.

    Args:
        at: RFC 3339 time; name: with the repository, e.g. ``tfenv:2.15-cu12``.
        before, after: digests of manifests; ``before`` is empty where the name meant nothing.
        cell, lock: of the image it means since then; empty where nobody knows.
        why: the command. verdict: of the image at that time: pass, fail, unverified, or empty.
    """

    at: str
    name: str
    kind: Kind
    before: str
    after: str
    cell: str
    lock: str
    why: str
    verdict: str
    format: int = FORMAT
