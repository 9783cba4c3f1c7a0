"""What the history says of a name: pure functions of its events, oldest first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from tfenv.errors import UsageError
from tfenv.times import instant

from .model import Event


def of(events: Iterable[Event], name: str) -> tuple[Event, ...]:
    """The events of one name."""
    return tuple(event for event in events if event.name == name)


def full_name(typed: str, repository: str) -> str:
    """The name of an image as it is written down: ``2.15-cu12`` is ``tfenv:2.15-cu12``."""
    return typed if ":" in typed else f"{repository}:{typed}"


def names(events: Iterable[Event]) -> tuple[str, ...]:
    """All names, in the order in which they first appeared."""
    return tuple(dict.fromkeys(event.name for event in events))


def held(events: Iterable[Event]) -> dict[str, Event]:
    """The names that were rolled back and not released since, with the event that holds each."""
    found: dict[str, Event] = {}
    for event in events:
        if event.kind == "rolled back":
            found[event.name] = event
        elif event.kind == "released":
            found.pop(event.name, None)
    return found


def earlier(events: Iterable[Event], now: str) -> tuple[Event, ...]:
    """What a name meant before, each digest once, the latest first; without what it means now."""
    found: dict[str, Event] = {}
    for event in events:
        if event.before and event.before not in found:
            found[event.before] = _unwritten(event)  # somebody else gave it that meaning
        if event.after:
            found.pop(event.after, None)
            found[event.after] = event
    return tuple(event for digest, event in reversed(found.items()) if digest != now)


def _unwritten(event: Event) -> Event:
    return Event(
        at="",
        name=event.name,
        kind="found",
        before="",
        after=event.before,
        cell="",
        lock="",
        why="not written down",
        verdict="",
    )


def meant_at(events: Iterable[Event], when: datetime) -> Event | None:
    """The event by which a name got the meaning that it had at a time; None where it had none yet."""
    found = None
    for event in events:
        if instant(event.at) <= when:
            found = event
        elif found is None and event.before:
            return _unwritten(event)
        else:
            break
    return found


def moment(text: str) -> datetime:
    """A day (its end, UTC) or an RFC 3339 time.

    Raises:
        UsageError: it is neither.
    """
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            day = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
            return day + timedelta(days=1) - timedelta(microseconds=1)
        return instant(text) if text.endswith("Z") else _with_zone(text)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is no date", remedy="write a day, 2026-11-30, or a time, 2026-11-30T15:00:00Z"
        ) from None


def _with_zone(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
