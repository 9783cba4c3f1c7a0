"""The nouns of a bisection: pins, sets of them, what differs between two sets, and what a test said."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

Word = Literal["good", "bad", "skip"]
# Requires-Dist of each package, by `name==version`.
Requires = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One package at one version.

    Args:
        name: as indexes write it.
        hashes: sha256 in hex of the files that may be installed; empty for whatever the index has.
        source: its source archive is taken, for there is no wheel.
        file: its file's name, where that is known.
    """

    name: str
    version: str
    hashes: tuple[str, ...] = ()
    source: bool = False
    file: str = ""

    @property
    def key(self) -> str:
        """``name==version``."""
        return f"{self.name}=={self.version}"

    def same(self, other: Pin) -> bool:
        """Whether an installer takes the same file for both, as far as they tell."""
        if self.key != other.key:
            return False
        return not self.hashes or not other.hashes or bool(set(self.hashes) & set(other.hashes))

    def line(self) -> str:
        """The line of a requirements file."""
        return " ".join([self.key, *(f"--hash=sha256:{sha}" for sha in self.hashes)])


@dataclass(frozen=True)
class PinSet:
    """All that one environment has, sorted by name."""

    pins: tuple[Pin, ...]

    @staticmethod
    def of(pins: Iterable[Pin]) -> PinSet:
        """The set of these, whatever their order."""
        return PinSet(tuple(sorted(pins, key=lambda pin: pin.name)))

    @cached_property
    def by_name(self) -> Mapping[str, Pin]:
        """Its pins by the package's name."""
        return {pin.name: pin for pin in self.pins}

    @cached_property
    def digest(self) -> str:
        """Two sets with the same digest are the same environment."""
        text = json.dumps([[p.name, p.version, sorted(p.hashes)] for p in self.pins])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def hashed(self) -> bool:
        """Whether all of its files are pinned by hash."""
        return all(pin.hashes for pin in self.pins)

    def requirements(self, about: str = "") -> str:
        """As a requirements file."""
        head = [f"# {line}" for line in about.splitlines()]
        return "\n".join([*head, *(pin.line() for pin in self.pins)]) + "\n"


@dataclass(frozen=True, kw_only=True)
class Change:
    """What differs in one package; None where it is not there."""

    name: str
    before: Pin | None
    after: Pin | None

    def __str__(self) -> str:
        if self.before and self.after:
            if self.before.version == self.after.version:
                return f"{self.name} {self.after.version} (another file of that version)"
            return f"{self.name} {self.before.version} -> {self.after.version}"
        if self.after:
            return f"{self.name} {self.after.version}, which was not there before"
        assert self.before is not None
        return f"{self.name} {self.before.version}, which is no longer there"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One end of the search.

    Args:
        label: as the user named it.
        pins: what is installed; None for what the requirements resolve to at ``when``.
        when: RFC 3339; the resolver's ``exclude_newer``. Empty where nobody knows.
        requirements: what was asked of the resolver; empty where nobody knows.
        from_source: packages that have a source archive only.
        without: packages that are not installed although something asks for them.
    """

    label: str
    pins: PinSet | None = None
    when: str = ""
    requirements: tuple[str, ...] = ()
    from_source: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def pin_to_plain(pin: Pin) -> list[Any]:
    """As a row of a journal."""
    return [pin.name, pin.version, list(pin.hashes), pin.source, pin.file]


def pins_to_plain(pins: PinSet) -> list[list[Any]]:
    """As rows of a journal."""
    return [pin_to_plain(pin) for pin in pins.pins]


def pins_from_plain(rows: Iterable[Any]) -> PinSet:
    """From rows of a journal. Raises ValueError, TypeError for what is none."""
    return PinSet.of(
        Pin(
            name=str(name),
            version=str(version),
            hashes=tuple(map(str, hashes)),
            source=bool(source),
            file=str(file),
        )
        for name, version, hashes, source, file in rows
    )
