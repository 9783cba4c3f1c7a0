"""The one place that moves an image's names: writes down what they meant, and leaves alone what is held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import images, times

from . import state
from .log import Log
from .model import Event, Kind

if TYPE_CHECKING:
    from tfenv.images import Image


@dataclass(frozen=True)
class Moved:
    """What came of it.

    Args:
        tags: the names that mean the image now; any: whether one of them did not before.
        held: the names that were left where they are, each with the event that holds it.
    """

    tags: tuple[str, ...]
    any: bool
    held: tuple[Event, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to tell the user of names that were left alone."""
        return tuple(
            f"{held_words(event)}, and was not moved: `tfenv rollback {event.name} --release` lets it go"
            for event in self.held
        )


def move(
    image: Image,
    tags: tuple[str, ...],
    env: Mapping[str, str],
    root: Path,
    *,
    why: str,
    verdict: str = "",
    passing: str = "",
) -> Moved:
    """Move ``tags`` to the image, all that are not held, or none; write down those that moved.

    Args:
        root: the store's folder. why: the command. verdict: of the image, where it is known.
        passing: a name that is removed once the tags hold the image.
    """
    log = Log(root)
    events = log.read().events
    holding = {name: event for name, event in state.held(events).items() if event.after != image.id}
    free = tuple(tag for tag in tags if tag not in holding)
    before = images.ids(free, env)
    moved = images.tag(image.id, free, env, passing=passing)
    last = {event.name: event.after for event in events}
    # One that means it already, though nobody wrote that down: a kill came between, or somebody else did it.
    log.append(
        event_of(tag, image, before=before[tag], why=why, verdict=verdict, kind=_kind(before[tag], image))
        for tag in free
        if before[tag] != image.id or last.get(tag) != image.id
    )
    return Moved(free, moved, tuple(holding[tag] for tag in tags if tag in holding))


def _kind(before: str, image: Image) -> Kind:
    return "found" if before == image.id else "moved"


def event_of(name: str, image: Image, *, before: str, why: str, verdict: str, kind: Kind) -> Event:
    """The line that is written down for a move that happens now."""
    return Event(
        at=times.now(),
        name=name,
        kind=kind,
        before="" if before == image.id else before,
        after=image.id,
        cell=image.cell,
        lock=image.lock,
        why=why,
        verdict=verdict,
    )


def held_words(event: Event) -> str:
    """That a name is held back, where and since when."""
    return f"{event.name} is held back at {event.after[:19]} since {event.at[:10]}"


def held_name(typed: str, repository: str, root: Path) -> Event | None:
    """The event that holds a name back, where that is what the user typed; None where it is not held."""
    holding = state.held(Log(root).read().events)
    return holding.get(state.full_name(typed, repository))
