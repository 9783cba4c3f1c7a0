"""What the user named as good and bad: a date, a cell, or a file or folder with pins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tfenv.bisect.model import Endpoint, PinSet
from tfenv.bisect.pinfiles import pins_of_lock, read_requirements
from tfenv.errors import UsageError
from tfenv.files import LOCK_NAME, read_text
from tfenv.lockfile import REQUIREMENTS_NAME, load_lock
from tfenv.model import Cell, Environment, Lock
from tfenv.times import instant, rfc3339

_MOST = 1 << 20  # bytes of a file that people write

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?Z?")
CUDA_WHEELS = "nvidia-"  # how the names of NVIDIA's wheels begin
_FILES = (LOCK_NAME, REQUIREMENTS_NAME, "requirements.txt")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is resolved where a date is given.

    Args:
        label: whose it is: a cell's name or a file's.
        requirements: as a resolver takes them.
        from_source, without: see ``model.Endpoint``.
    """

    label: str
    requirements: tuple[str, ...]
    from_source: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where names are looked up.

    Args:
        lock: cell or alias -> its cell and lock. Raises UsageError.
        now: the time of day.
        environment: PEP 508's variables, for markers in requirements files.
        cuda: whether NVIDIA's wheels are part of it.
    """

    lock: Callable[[str], tuple[Cell, Lock]]
    now: Callable[[], datetime]
    environment: Mapping[str, str]
    cuda: bool = False


def endpoint(text: str, asked: Asked | None, places: Places) -> Endpoint:
    """What ``text`` means.

    Args:
        asked: what dates are resolved with; None where neither a cell nor a file was given.

    Raises:
        UsageError: it is nothing of these, or a date without anything to resolve.
    """
    if when := moment(text, places.now()):
        if asked is None:
            raise UsageError(
                f"{text} is a date, and nothing says what to resolve as of then",
                remedy="name a cell (tfenv bisect 2.15-cu12 --good ...), or requirements: -r requirements.in",
            )
        return _asking(text, asked, when=when)
    path = Path(text)
    if path.is_dir():
        found = next((path / name for name in _FILES if (path / name).is_file()), None)
        if found is None:
            raise UsageError(f"{text} holds no lock", remedy=f"it has to hold one of {', '.join(_FILES)}")
        path = found
    if path.is_file():
        return _from_file(text, path, asked, places)
    if "/" in text or text.endswith((".txt", ".json", ".lock", ".in")):
        raise UsageError(f"there is no {text}", remedy="name a lock, a requirements file, a cell or a date")
    return of_cell(text, *places.lock(text), places)


def of_cell(label: str, cell: Cell, lock: Lock, places: Places) -> Endpoint:
    """A cell as an end; a team's environment is of the day of the team's own packages."""
    asked = asked_of(cell, cuda=places.cuda)
    when = cell.exclude_newer if isinstance(cell, Environment) else lock.exclude_newer
    return _asking(label, asked, when=when, pins=pins_of_lock(lock, cuda=places.cuda))


def of_lock(label: str, lock: Lock, places: Places) -> Endpoint:
    """A lock as an end: its pins, and what they were resolved from."""
    return Endpoint(
        label=label,
        pins=pins_of_lock(lock, cuda=places.cuda),
        when=lock.exclude_newer,
        requirements=wanted(lock.requirements, cuda=places.cuda),
        from_source=tuple(w.name for w in lock.wheels if w.layer == "source"),
        without=tuple(rule.what for rule in lock.without) if places.cuda else (),
    )


def asked_of(cell: Cell, *, cuda: bool) -> Asked:
    """What a cell asks a resolver for."""
    return Asked(
        label=cell.name,
        requirements=wanted(cell.requirements, cuda=cuda),
        from_source=tuple(rule.what for rule in cell.row.from_source),
        without=tuple(rule.what for rule in cell.cuda_set.without) if cuda else (),
    )


def _asking(label: str, asked: Asked, *, when: str = "", pins: PinSet | None = None) -> Endpoint:
    return Endpoint(
        label=label,
        pins=pins,
        when=when,
        requirements=asked.requirements,
        from_source=asked.from_source,
        without=asked.without,
    )


def wanted(requirements: tuple[str, ...], *, cuda: bool) -> tuple[str, ...]:
    """A cell's requirements, without NVIDIA's wheels unless these are wanted."""
    return tuple(text for text in requirements if cuda or not text.startswith(CUDA_WHEELS))


def moment(text: str, now: datetime) -> str:
    """A date as RFC 3339, the end of that day but never later than now; empty where it is no date.

    Raises:
        UsageError: it looks like a date and is none.
    """
    if text in ("today", "now"):
        return rfc3339(now)
    try:
        if _DAY.fullmatch(text):
            return rfc3339(min(instant(f"{text}T00:00:00Z") + timedelta(days=1), now))
        if _TIME.fullmatch(text):
            return rfc3339(instant(text.replace(" ", "T")))
    except ValueError as error:
        raise UsageError(f"{text} is no date: {error}", remedy="write it as 2024-03-01") from error
    return ""


def read_wanted(path: Path) -> tuple[str, ...]:
    """The lines of a requirements file that need not be pinned.

    Raises:
        UsageError: it cannot be read, or a line is none.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    lines = read_text(path, _MOST).splitlines()
    found = []
    for number, raw in enumerate(lines, 1):
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        if not line:
            continue
        try:
            Requirement(line)
        except InvalidRequirement as error:
            raise UsageError(
                f"{path}, line {number}: {line[:80]!r} is no requirement",
                remedy="one requirement a line, such as tensorflow==2.14.0; options and other files are "
                "not followed",
            ) from error
        found.append(line)
    if not found:
        raise UsageError(f"{path} asks for nothing", remedy="one requirement a line")
    return tuple(found)


def _from_file(text: str, path: Path, asked: Asked | None, places: Places) -> Endpoint:
    if path.suffix == ".json":
        try:
            content = path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be read: {error}", remedy="name a lock.json") from error
        if '"kind": "team"' in content:
            raise UsageError(
                f"{path} is the lock of a team's environment, which is no whole without its row's",
                remedy="name the environment itself, e.g. --good vision",
            )
        return of_lock(text, load_lock(content, where=str(path)), places)
    pins = read_requirements(path, places.environment)
    if not places.cuda:
        pins = PinSet.of(pin for pin in pins.pins if not pin.name.startswith(CUDA_WHEELS))
    return Endpoint(label=text, pins=pins) if asked is None else _asking(text, asked, pins=pins)
