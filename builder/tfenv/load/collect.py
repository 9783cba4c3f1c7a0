"""The JSON lines of the program, read into what it said. A line that is no event is passed over."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tfenv.errors import IntegrityError
from tfenv.eventlines import NUMBER_MOST, event_of, lines_in
from tfenv.report import LATEST

from .given import of_given
from .model import Bench, Compared, Gpu, Progress, Row, Sample, Stress, Xid

_T = TypeVar("_T")
Event = Mapping[str, Any]

_PRODUCTS = ("to_cpu", "to_first_gpu")
BROKEN_OFF = "it was broken off"  # no ``end`` came
NOTHING_RAN = "no configuration ran"


def event_in(line: str) -> dict[str, Any] | None:
    """The event in a line, None if it holds none: other programs may print on stdout too."""
    return event_of(line, infinite=True)  # a product that is no number is a finding


def events_of(text: str) -> list[dict[str, Any]]:
    """All events of what the program printed."""
    return [event for line in lines_in(text) if (event := event_in(line))]


@contextmanager
def _as_expected(name: str) -> Iterator[None]:
    """What an image has printed may be anything."""
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise IntegrityError(
            f"a line of {name} is not as expected: {type(error).__name__}: {error}",
            remedy="run it again with this version of tfenv",
        ) from None


def made(kind: type[_T], event: Event) -> _T:
    """A dataclass of the values that it knows.

    Raises:
        TypeError: one is missing, of another type, or no number to compute with.
    """
    hints = _hints(kind)  # type: ignore[arg-type]  # mypy takes a type variable's class for unhashable
    known = {name: value for name, value in event.items() if name in hints}
    for name, value in known.items():
        # A product that is no number is a finding; a temperature that is none is nonsense.
        counts = _countable(value) or (kind is Compared and name in _PRODUCTS and isinstance(value, float))
        if not (counts and _fits(hints[name], value)):
            raise TypeError(f"{name} is {str(value)[:60]!r}")
    return kind(**known)


@cache
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def _fits(hint: Any, value: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(one, value) for one in args)
    if origin is Literal:
        return value in args
    if hint is float:
        return type(value) in (int, float)
    if origin is not None:  # a mapping of names to numbers
        return isinstance(value, Mapping) and all(_fits(args[1], one) for one in value.values())
    return type(value) is hint


def _countable(value: Any) -> bool:
    return abs(value) < NUMBER_MOST if isinstance(value, (int, float)) else True  # NaN is not


def _number(event: Event, name: str, most: float = NUMBER_MOST) -> float:
    value = event.get(name, 0)
    if type(value) not in (int, float) or not 0 <= value < most:
        raise ValueError(f"{name} is {str(value)[:60]!r}")
    return float(value)


def _all(kind: type[_T], events: Iterable[Event], name: str) -> tuple[_T, ...]:
    with _as_expected(name):
        return tuple(made(kind, event) for event in events if event["event"] == name)


def _first(events: Iterable[Event], name: str) -> Event:
    return next((event for event in events if event["event"] == name), {})


def _ended(events: list[Event], noted: str) -> str:
    end = _first(events, "end")
    if not (end and _first(events, "start")):
        return noted or BROKEN_OFF
    return str(end["why"]) or noted


def kind_of(start: Event) -> str:
    """Which command's lines begin with this event."""
    said = start.get("kind") or ("verify" if "suite_sha256" in start else "")
    return f"{said:.40}" if isinstance(said, str) and said else "another program"


def _start(events: list[Event], kind: str) -> Event:
    start = _first(events, "start")
    if start and start.get("kind") != kind:
        raise IntegrityError(f"these are lines of {kind_of(start)}", remedy=f"give those of {kind}")
    names = [event["event"] for event in events]
    if names.count("start") > 1 or "end" in names[:-1]:
        raise IntegrityError("these are lines of more than one run", remedy="give those of one run")
    return start


_FACTS = ("program", "python", "kernel", "machine", "cpu", "cpus", "environment")


def stress_of(events: Iterable[Event], *, noted: str = "", tail: str = "") -> Stress:
    """A run of stress.

    Args:
        noted: why the program ended, as the host saw it, if it did not say so itself.

    Raises:
        IntegrityError: the lines are not those of a run of stress.
    """
    with _as_expected("stress"):
        return _stress_of(list(events), noted, tail)


def _stress_of(events: list[Event], noted: str, tail: str) -> Stress:
    start, end, worker = _start(events, "stress"), _first(events, "end"), _first(events, "worker")
    events = of_given(events, start)
    after = {int(event["gpu"]): event["errors"] for event in events if event["event"] == "errors"}
    gpus = []
    for event in events:
        if event["event"] == "gpu":
            index = int(event["gpu"])
            about = {name: value for name, value in event.items() if name != "gpu"}
            gpus.append(
                made(Gpu, {**about, "index": index, "before": event["errors"], "after": after.get(index, {})})
            )
    minutes = _number(start, "minutes")
    if start and not minutes:
        raise ValueError("it was to run for no time")
    progress = _all(Progress, events, "progress")
    for one in progress:
        if min(one.gpu, one.products, one.wrong, one.differing, one.tflops) < 0:
            raise ValueError(f"progress of GPU {one.gpu} is negative")
    return Stress(
        minutes=minutes,
        started=int(_number(start, "started", LATEST)),
        seconds=_number(end, "seconds"),
        facts={name: start[name] for name in _FACTS if name in start},
        driver=str(_first(events, "driver").get("version", "")),
        tensorflow=str(worker.get("tensorflow", "")),
        size=int(_number(worker, "size")),
        devices=tuple(str(device["name"]) for device in worker.get("devices", ())),
        gpus=tuple(gpus),
        samples=_all(Sample, events, "sample"),
        progress=progress,
        compared=_all(Compared, events, "compared"),
        xids=_all(Xid, events, "xid"),
        xid_sources=tuple(str(one) for one in _first(events, "sampled").get("xid_sources", ())),
        broke={int(event["gpu"]): str(event["why"]) for event in events if event["event"] == "broke"},
        unsampled=_unsampled(events),
        why=_ended(events, noted),
        tail=str(end.get("tail", "")) or tail,
    )


def _unsampled(events: list[Event]) -> str:
    """Why the GPUs were not watched, or not to the end; empty if they were."""
    if said := _first(events, "unsampled"):
        return str(said.get("why", "")) or "it is not said why"
    watched = not any(event["event"] == "sample" for event in events) or _first(events, "sampled")
    return "" if watched else "they were not watched to the end"


def bench_of(events: Iterable[Event], *, noted: str = "") -> Bench:
    """A run of bench.

    Raises:
        IntegrityError: the lines are not those of a run of bench.
    """
    with _as_expected("bench"):
        return _bench_of(list(events), noted)


def _bench_of(events: list[Event], noted: str) -> Bench:
    start, end = _start(events, "bench"), _first(events, "end")
    measured = [event for event in events if event["event"] == "row" and event.get("devices")]
    rows = _all(Row, events, "row")
    require_measured(rows)
    if few := [e for e in measured if e["status"] == "ok" and len(e["devices"]) < e["gpus"]]:
        raise ValueError(f"{few[0]['gpus']} GPUs were measured on {len(few[0]['devices'])}")
    told = start.get("told", {})
    if not isinstance(told, Mapping):
        raise TypeError(f"told is {told!r:.60}")
    widest: list[Event] = max((list(event["devices"]) for event in measured), key=len, default=[])
    return Bench(
        started=int(_number(start, "started", LATEST)),
        seconds=_number(end, "seconds"),
        facts={name: start[name] for name in _FACTS if name in start},
        told=told,
        rows=rows,
        driver=str(start.get("driver", "")),
        tensorflow=str(measured[0].get("tensorflow", "")) if measured else "",
        devices=tuple(str(device["name"]) for device in widest),
        why=_ended(events, noted) or ("" if any(row.status == "ok" for row in rows) else NOTHING_RAN),
    )


def require_measured(rows: Iterable[Row]) -> None:
    """Raises ValueError: a row's figures cannot have been measured; advice would divide by them."""
    for row in rows:
        ran = row.status == "ok"
        if (
            row.gpus < 1
            or bool(row.reduction) != (row.gpus > 1)
            or (ran and not 0 < row.low <= row.throughput <= row.high)
        ):
            raise ValueError(f"{row.words} was measured at {row.low:g} to {row.throughput:g} to {row.high:g}")
