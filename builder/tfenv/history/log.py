"""The history as a file: a JSON object a line, only ever appended to."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tfenv.plain import from_plain, to_plain
from tfenv.store import not_ready_when_unwritable
from tfenv.times import instant

from .model import FORMAT, Event

_LONGEST = 1 << 16  # bytes of a line; ours have some hundred


@dataclass(frozen=True)
class History:
    """What the file holds, oldest first.

    Args:
        damaged: lines that cannot be read: cut off by a kill, or changed.
        newer: lines that a newer tfenv wrote.
    """

    events: tuple[Event, ...]
    damaged: int = 0
    newer: int = 0


class Log:
    """The history of one machine."""

    def __init__(self, root: Path) -> None:
        self.path = root / "history" / "names.jsonl"

    def read(self) -> History:
        """All that can be read; a line that cannot is counted, and hides no other."""
        try:
            with self.path.open("rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return History(())
        events, damaged, newer = [], 0, 0
        for line in filter(None, lines):
            try:
                data = json.loads(line) if len(line) <= _LONGEST else None
                if isinstance(data, dict) and type(data.get("format")) is int and data["format"] > FORMAT:
                    newer += 1
                    continue
                event = from_plain(Event, data)
                instant(event.at)  # or it is no time
                events.append(event)
            except (ValueError, OverflowError, RecursionError):
                damaged += 1
        return History(tuple(events), damaged, newer)

    def append(self, events: Iterable[Event]) -> None:
        """Add lines, whole or not at all as far as the system allows; a line cut off before stays alone.

        Raises:
            NotReadyError: the store cannot be written.
        """
        text = "".join(json.dumps(to_plain(event), sort_keys=True) + "\n" for event in events).encode()
        if not text:
            return
        with not_ready_when_unwritable(self.path.parent.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                end = os.lseek(handle, 0, os.SEEK_END)
                if end and os.pread(handle, 1, end - 1) != b"\n":
                    text = b"\n" + text
                _write(handle, text, end)
                os.fsync(handle)
            finally:
                os.close(handle)


def _write(handle: int, text: bytes, end: int) -> None:
    left = text
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError:
        os.ftruncate(handle, end)  # the disk is full: no half of a line stays
        raise
