"""JSON lines as a program in an image prints them, among whatever else it prints: read within bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

LINE_MOST = 16 << 20  # bytes; a longer line is no event
_DEPTH = 32  # of objects in objects: less than what json itself takes, whose readers recurse
NUMBER_MOST = 1 << 64  # no figure that is meant reaches it, nor the bits of a register


class Lines:
    """Splits bytes that come in pieces into lines; one that is longer than ``most`` bytes is left out."""

    def __init__(self, most: int = LINE_MOST) -> None:
        self._most, self._pending, self._lost = most, bytearray(), False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` ends."""
        *whole, rest = data.split(b"\n")
        lines = []
        for part in whole:
            self._add(part)
            lines.append(self.rest())
        self._add(rest)
        return lines

    def rest(self) -> bytes:
        """What came since the last end of a line, which is forgotten."""
        line = b"" if self._lost else bytes(self._pending)
        self._pending, self._lost = bytearray(), False
        return line

    def _add(self, part: bytes) -> None:
        if self._lost or len(self._pending) + len(part) > self._most:
            self._pending, self._lost = bytearray(), True
        else:
            self._pending += part


def lines_in(text: str) -> Iterator[str]:
    """The lines of a text, one after the other: a list of them may be many times as large."""
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        yield text[at:end].rstrip("\r")
        at = end + 1


def event_of(line: str, *, infinite: bool = False) -> dict[str, Any] | None:
    """The event in a line: an object that names one; None if it holds none.

    All of it can be written as JSON and as UTF-8 again.

    Args:
        infinite: leave NaN and Infinity as they are, for readers who judge them; else they become words.
    """
    if '"event"' not in line:
        return None  # most of what others print: not worth an exception
    try:
        event = json.loads(line)
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            return None
        return {_text(name): _plain(value, infinite, _DEPTH) for name, value in event.items()}
    except (ValueError, RecursionError):
        return None


def _plain(value: Any, infinite: bool, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int) and abs(value) >= NUMBER_MOST:
        value = math.inf if value > 0 else -math.inf
    if isinstance(value, float):
        return value if infinite or math.isfinite(value) else str(value)
    if isinstance(value, (dict, list)) and not depth:
        raise ValueError("too deep")
    if isinstance(value, dict):
        return {_text(name): _plain(inner, infinite, depth - 1) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, infinite, depth - 1) for inner in value]
    return value


def _text(text: str) -> str:
    """A lone surrogate, which JSON can hold, is no character that can be written."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
