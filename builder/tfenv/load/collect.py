"""The JSON lines of the program, read into what it said. A line that is no event is passed over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from tfenv.errors import IntegrityError

from .model import Bench, Compared, Gpu, Progress, Row, Sample, Stress, Xid

_T = TypeVar("_T")
Event = Mapping[str, Any]

BROKEN_OFF = "it was broken off"  # no ``end`` came


def event_of(line: str) -> dict[str, Any] | None:
    """The event in a line, None if it holds none: other programs may print on stdout too."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def events_of(text: str) -> list[dict[str, Any]]:
    """All events of what the program printed."""
    return [event for line in text.splitlines() if (event := event_of(line))]


def _made(kind: type[_T], event: Event) -> _T:
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in event.items() if name in known})


def _all(kind: type[_T], events: Iterable[Event], name: str) -> tuple[_T, ...]:
    try:
        return tuple(_made(kind, event) for event in events if event["event"] == name)
    except TypeError as error:
        raise IntegrityError(
            f"a line of {name} is not as expected: {error}", remedy="run it again with this version of tfenv"
        ) from None


def _first(events: Iterable[Event], name: str) -> Event:
    return next((event for event in events if event["event"] == name), {})


def _ended(events: list[Event], noted: str) -> str:
    end = _first(events, "end")
    return str(end.get("why", "")) if end else noted or BROKEN_OFF


def _start(events: list[Event], kind: str) -> Event:
    start = _first(events, "start")
    if start and start.get("kind") != kind:
        raise IntegrityError(f"these are lines of {start.get('kind')}", remedy=f"give those of {kind}")
    return start


_FACTS = ("program", "python", "kernel", "machine", "cpu", "cpus", "environment")


def stress_of(events: Iterable[Event], *, noted: str = "", tail: str = "") -> Stress:
    """A run of stress.

    Args:
        noted: why the program ended, as the host saw it, if it did not say so itself.

    Raises:
        IntegrityError: the lines are not those of a run of stress.
    """
    events = list(events)
    start, end, worker = _start(events, "stress"), _first(events, "end"), _first(events, "worker")
    after = {int(event["gpu"]): event["errors"] for event in events if event["event"] == "errors"}
    gpus = []
    for event in events:
        if event["event"] == "gpu":
            index = int(event["gpu"])
            about = {name: value for name, value in event.items() if name != "gpu"}
            gpus.append(
                _made(
                    Gpu, {**about, "index": index, "before": event["errors"], "after": after.get(index, {})}
                )
            )
    return Stress(
        minutes=float(start.get("minutes", 0.0)),
        started=int(start.get("started", 0)),
        seconds=float(end.get("seconds", 0.0)),
        facts={name: start[name] for name in _FACTS if name in start},
        driver=str(_first(events, "driver").get("version", "")),
        tensorflow=str(worker.get("tensorflow", "")),
        size=int(worker.get("size", 0)),
        devices=tuple(str(device["name"]) for device in worker.get("devices", ())),
        gpus=tuple(gpus),
        samples=_all(Sample, events, "sample"),
        progress=_all(Progress, events, "progress"),
        compared=_all(Compared, events, "compared"),
        xids=_all(Xid, events, "xid"),
        xid_sources=tuple(_first(events, "sampled").get("xid_sources", ())),
        broke={int(event["gpu"]): str(event["why"]) for event in events if event["event"] == "broke"},
        unsampled=str(_first(events, "unsampled").get("why", "")),
        why=_ended(events, noted),
        tail=str(end.get("tail", "")) or tail,
    )


def bench_of(events: Iterable[Event], *, noted: str = "") -> Bench:
    """A run of bench.

    Raises:
        IntegrityError: the lines are not those of a run of bench.
    """
    events = list(events)
    start, end = _start(events, "bench"), _first(events, "end")
    measured = [event for event in events if event["event"] == "row" and event.get("devices")]
    widest: list[Event] = max((list(event["devices"]) for event in measured), key=len, default=[])
    return Bench(
        started=int(start.get("started", 0)),
        seconds=float(end.get("seconds", 0.0)),
        facts={name: start[name] for name in _FACTS if name in start},
        told=start.get("told", {}),
        rows=_all(Row, events, "row"),
        driver=str(start.get("driver", "")),
        tensorflow=str(measured[0].get("tensorflow", "")) if measured else "",
        devices=tuple(str(device["name"]) for device in widest),
        why=_ended(events, noted),
    )
