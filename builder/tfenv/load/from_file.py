"""What the program printed elsewhere into a file: refused where it is not that of one run for this cell."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfenv.began import began
from tfenv.container import Ended
from tfenv.errors import IntegrityError, UsageError
from tfenv.files import LINES_MOST, read_text
from tfenv.model import Cell

from .collect import events_of, kind_of
from .running import Collected, Event
from .whose import require_of


def collected(
    path: Path,
    kind: str,
    cell: Cell,
    *,
    tell: Callable[[str], None] = lambda _said: None,
    now: Callable[[], float] = time.time,
) -> Collected:
    """What a run of ``kind`` (stress or bench) has said, as if it had been run here.

    Args:
        tell: gets a sentence on what is not believed. now: Unix seconds.

    Raises:
        UsageError: there is nothing to judge in the file, or it is of something else.
    """
    events = events_of(read_text(path, LINES_MOST))
    start = _only_start(path, kind, events)
    try:
        require_of(cell, events)
    except IntegrityError as error:
        raise UsageError(f"{path}: {error.message}", remedy=error.remedy) from None
    told = {
        **start,
        "started": began(
            start.get("started"),
            written=path.stat().st_mtime,
            seconds=_seconds(events),
            now=now(),
            tell=tell,
        ),
    }
    return Collected(
        events=tuple(told if event is start else event for event in events), ended=Ended(0), stderr=""
    )


def _only_start(path: Path, kind: str, events: Sequence[Event]) -> Event:
    starts = [event for event in events if event["event"] == "start"]
    if not starts:
        lost = "not the first line of a run" if events else "no line of load.pyz"
        raise UsageError(
            f"{path} holds {lost}: the command that wrote it failed, or its beginning is lost",
            remedy="look at what that command printed on stderr, and run it again",
        )
    if (said := kind_of(starts[0])) != kind:
        known = said in ("verify", "stress", "bench")
        remedy = f"type: tfenv {said} CELL --lines {path}" if known else f"give those of {kind}"
        raise UsageError(f"{path}: these are lines of {said}", remedy=remedy)
    if len(starts) > 1:
        raise UsageError(f"{path} holds more than one run", remedy="give those of one run, or run it again")
    return starts[0]


def _seconds(events: Sequence[Mapping[str, Any]]) -> float:
    said = next((event.get("seconds") for event in events if event["event"] == "end"), 0)
    return float(said) if isinstance(said, (int, float)) and 0 <= said < 1e9 else 0.0
