"""When a distribution, a Python or a driver branch ends: read from a data file with its sources."""

from __future__ import annotations

from datetime import date
from typing import Literal

from . import factfiles

Kind = Literal["ubuntu", "debian", "python", "driver"]


def ends(kind: Kind, version: str) -> date | None:
    """The last day of support; None if that is not known.

    Args:
        version: ``22.04``, ``12``, ``3.11`` or a driver branch such as ``580``.
    """
    found = factfiles.read("eol")[kind]["rows"].get(version)
    return date.fromisoformat(found) if found else None


def ended(kind: Kind, version: str, today: date) -> date | None:
    """The last day of support if that is before ``today``; None if not, or not known."""
    last = ends(kind, version)
    return last if last and last < today else None


def source(kind: Kind | Literal["deadsnakes"]) -> str:
    """Where the dates of a kind come from."""
    return str(factfiles.read("eol")[kind]["source"])
