"""BuildKit's rawjson progress as a list of steps: a pure state machine, it neither reads nor prints.

The stream is github.com/moby/buildkit's client.SolveStatus: vertexes, statuses, logs, warnings.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

State = Literal["waiting", "running", "done", "cached", "failed"]

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]P^_].*?(?:\x07|\x1b\\|$)"  # OSC and other strings: titles, links
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)
# C0 and C1 controls but tab and newline, and the marks that reorder text on a terminal.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
TAIL = 200  # lines of output kept per step


def clean(text: str) -> str:
    """``text`` without anything that drives a terminal; a carriage return becomes a newline."""
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", plain)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a build. Times are UTC; ``spent`` is seconds of finished work.

    Args:
        number: order of appearance, from 1.
        current: bytes moved so far; total: bytes to move, 0 where BuildKit does not say.
        since: when the work that is going on now began.
    """

    number: int
    digest: str
    name: str
    state: State = "waiting"
    started: datetime | None = None
    completed: datetime | None = None
    since: datetime | None = None
    spent: float = 0.0
    current: int = 0
    total: int = 0
    error: str = ""

    @property
    def internal(self) -> bool:
        """BuildKit's own housekeeping, of no interest unless it moves many bytes."""
        return self.name.startswith("[internal]")

    def seconds(self, now: datetime | None = None) -> float:
        """Seconds of work: finished, and up to ``now`` where it goes on."""
        going = (now - self.since).total_seconds() if now and self.since else 0.0
        return self.spent + max(going, 0.0)


def parse_time(text: str | None) -> datetime | None:
    """An RFC 3339 time with nanoseconds, cut to microseconds."""
    if not text:
        return None
    found = re.fullmatch(r"(.+?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", text)
    if not found:
        return None
    fraction = (found.group(2) or "")[:6].ljust(6, "0")
    zone = found.group(3).replace("Z", "+00:00")
    return datetime.fromisoformat(f"{found.group(1)}.{fraction}{zone}")


class Decoder:
    """Cuts the client's output into events. buildx 0.13 prints them indented, later ones per line."""

    def __init__(self) -> None:
        self._pending: list[str] = []

    def feed(self, line: str) -> dict[str, Any] | str | None:
        """An event, a line of plain text, or None while an event is incomplete."""
        text = line.rstrip("\r\n")
        if not self._pending and not text.startswith("{"):
            return text
        self._pending.append(text)
        if not text.endswith("}") or (len(self._pending) > 1 and text != "}"):
            return None
        whole = "\n".join(self._pending)
        try:
            event = json.loads(whole)
        except ValueError:
            return self._give_up(whole)
        self._pending.clear()
        return event if isinstance(event, dict) else whole

    def close(self) -> str | None:
        """What was left of an incomplete event, as text."""
        return self._give_up("\n".join(self._pending)) if self._pending else None

    def _give_up(self, text: str) -> str:
        self._pending.clear()
        return text


class Progress:
    """The steps so far. ``feed`` takes one event and gives the steps that it changed."""

    def __init__(self) -> None:
        self._steps: dict[str, Step] = {}
        self._bytes: dict[str, dict[str, tuple[int, int]]] = {}
        self._spans: dict[str, dict[str, float]] = {}
        self._tails: dict[str, deque[str]] = {}

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps in order of appearance."""
        return tuple(self._steps.values())

    @property
    def failed(self) -> Step | None:
        """The step that broke the build: the first with an error that is no mere cancellation."""
        broken = [step for step in self.steps if step.state == "failed"]
        own = [step for step in broken if "context canceled" not in step.error]
        return next(iter(own or broken), None)

    def tail(self, digest: str, lines: int = 20) -> list[str]:
        """The last lines that a step printed."""
        kept = [line for line in self._tails.get(digest, ()) if line]
        return kept[-lines:]

    def feed(self, event: Mapping[str, Any]) -> tuple[Step, ...]:
        """Take one event; the steps that changed, in order of appearance."""
        changed: dict[str, None] = {}
        for vertex in event.get("vertexes") or ():
            changed[self._vertex(vertex)] = None
        for status in event.get("statuses") or ():
            if digest := self._status(status):
                changed[digest] = None
        for log in event.get("logs") or ():
            self._log(log)
        return tuple(self._steps[digest] for digest in changed)

    def _vertex(self, vertex: Mapping[str, Any]) -> str:
        digest = str(vertex["digest"])
        step = self._steps.get(digest) or Step(
            number=len(self._steps) + 1, digest=digest, name=clean(str(vertex.get("name", "")))
        )
        began, ended = parse_time(vertex.get("started")), parse_time(vertex.get("completed"))
        if began and ended:
            # A vertex may start more than once (a cache look-up, then the work): add the spans up.
            spans = self._spans.setdefault(digest, {})
            spans[str(vertex["started"])] = (ended - began).total_seconds()
            step = replace(step, spent=sum(spans.values()))
        error = clean(str(vertex.get("error") or ""))
        state: State = (
            "failed"
            if error
            else "cached"
            if vertex.get("cached")
            else "done"
            if ended
            else "running"
            if began
            else step.state
        )
        self._steps[digest] = replace(
            step,
            state=state,
            error=error,
            started=step.started or began,
            completed=ended,
            since=None if ended else began,
        )
        return digest

    def _status(self, status: Mapping[str, Any]) -> str | None:
        digest = str(status.get("vertex", ""))
        if digest not in self._steps:
            return None
        seen = self._bytes.setdefault(digest, {})
        seen[str(status.get("id", ""))] = (
            int(status.get("current") or 0),
            int(status.get("total") or 0),
        )
        current = sum(now for now, _ in seen.values())
        total = sum(whole for _, whole in seen.values())
        self._steps[digest] = replace(self._steps[digest], current=current, total=total)
        return digest

    def _log(self, log: Mapping[str, Any]) -> None:
        tail = self._tails.setdefault(str(log.get("vertex", "")), deque([""], maxlen=TAIL))
        first, *others = clean(decode(log.get("data"))).split("\n")
        tail[-1] += first  # a line may arrive in pieces
        tail.extend(others)


def decode(data: object) -> str:
    """Base64 of BuildKit as text; what is no base64 is nothing."""
    try:
        return base64.b64decode(str(data or "")).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def logs(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(step digest, text) of what the steps printed in this event."""
    return [(str(log.get("vertex", "")), decode(log.get("data"))) for log in event.get("logs") or ()]
