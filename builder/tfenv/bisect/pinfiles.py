"""Read pins: from requirements files (with hashes or without, as `pip freeze` writes them) and from locks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tfenv.bisect.model import Pin, PinSet
from tfenv.errors import UsageError
from tfenv.model import Lock, Wheel

_MOST = 1 << 24  # bytes of a requirements file
_HASH = re.compile(r"--hash[= ]([a-z0-9]+):([0-9a-fA-F]+)")


def pins_of_lock(lock: Lock, *, cuda: bool) -> PinSet:
    """What a cell's lock installs.

    Args:
        cuda: with NVIDIA's wheels; without them it is a few hundred megabytes, and enough for the CPU.
    """

    def wanted(wheel: Wheel) -> bool:
        return wheel.layer in ("python", "source") or (cuda and wheel.layer == "cuda")

    return PinSet.of(
        Pin(
            name=wheel.name,
            version=wheel.version,
            hashes=(wheel.sha256,),
            file=wheel.filename,
            source=wheel.layer == "source",
        )
        for wheel in lock.wheels
        if wanted(wheel)
    )


def read_requirements(path: Path, environment: Mapping[str, str]) -> PinSet:
    """The pins of a requirements file.

    Args:
        environment: PEP 508's variables; lines whose markers are not of this Python are left out.

    Raises:
        UsageError: it cannot be read, or something in it is no pin; names the line.
    """
    try:
        if path.stat().st_size > _MOST:
            raise ValueError("it is too long to be a list of packages")
        with path.open("rb") as file:  # a device has no size, and need not end
            data = file.read(_MOST + 1)
        if len(data) > _MOST:
            raise ValueError("it does not end")
        text = data.decode("utf-8")
    except (OSError, ValueError) as error:
        raise _bad(str(path), f"it cannot be read: {error}") from error
    return parse_requirements(text, environment, where=str(path))


def parse_requirements(text: str, environment: Mapping[str, str], *, where: str) -> PinSet:
    """The same from text; ``where`` is for messages.

    Raises:
        UsageError: a line is no pin, a package is there twice, or there is none at all.
    """
    pins: dict[str, Pin] = {}
    for number, line in _logical(text):
        pin = _pin(line, environment, f"{where}, line {number}")
        if pin is None:
            continue
        if pin.name in pins and pins[pin.name] != pin:
            raise _bad(f"{where}, line {number}", f"{pin.name} is there twice")
        pins[pin.name] = pin
    if not pins:
        raise _bad(where, "it names no package")
    return PinSet.of(pins.values())


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, continued ones as one; with the number of the first."""
    so_far, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        start = start or number
        if line.endswith("\\"):
            so_far += line[:-1] + " "
            continue
        if whole := (so_far + line).strip():
            yield start, whole
        so_far, start = "", 0
    if so_far.strip():
        yield start, so_far.strip()


def _pin(line: str, environment: Mapping[str, str], where: str) -> Pin | None:
    from packaging.markers import UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    if line.startswith("-"):
        if re.match(r"(-r|-c|--requirement|--constraint|-e|--editable)\b", line):
            raise _bad(where, f"{line.split()[0]} is not followed: give one file that pins everything")
        return None  # how pip reaches an index: the user's own configuration says that
    hashes = tuple(value.lower() for kind, value in _HASH.findall(line) if kind == "sha256")
    try:
        wanted = Requirement(_HASH.sub("", line).strip())
        if wanted.marker is not None and not wanted.marker.evaluate({**environment, "extra": ""}):
            return None
    except (InvalidRequirement, UndefinedEnvironmentName) as error:
        raise _bad(where, f"{line[:80]!r} is no requirement ({str(error).splitlines()[0]})") from error
    exact = [spec.version for spec in wanted.specifier if spec.operator in ("==", "===")]
    if wanted.url or len(exact) != 1 or exact[0].endswith("*"):
        raise _bad(where, f"{wanted.name} is not pinned to one version (name==version)")
    return Pin(name=canonicalize_name(wanted.name), version=exact[0], hashes=hashes)


def _bad(where: str, why: str) -> UsageError:
    return UsageError(
        f"{where}: {why}",
        remedy="give a file of pins, as `uv pip compile --generate-hashes` or `pip freeze` write it; "
        "what is not pinned goes with -r and two dates",
    )
