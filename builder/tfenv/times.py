"""Times as they stand in matrices, locks and facts: RFC 3339 in UTC, ending in Z."""

from __future__ import annotations

from datetime import datetime, timezone


def instant(time: str) -> datetime:
    """The moment that a time such as ``2024-03-20T00:00:00Z`` names.

    Raises:
        ValueError: it is none. (Python 3.10 does not read the Z.)
    """
    return datetime.fromisoformat(time.removesuffix("Z") + "+00:00")


def unix(time: str) -> int:
    """The same in Unix seconds."""
    return int(instant(time).timestamp())


def rfc3339(moment: datetime | int) -> str:
    """A moment as such a text.

    Args:
        moment: with a time zone, or Unix seconds; parts of a second are left out.
    """
    if isinstance(moment, int):
        moment = datetime.fromtimestamp(moment, timezone.utc)
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def now() -> str:
    """The present, as such a text."""
    return rfc3339(datetime.now(timezone.utc))
