"""Simulated worlds to bisect in: releases over time, a resolver, environments that only count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version
from tfenv.bisect import moments as times
from tfenv.bisect.changes import Rules, environment_of
from tfenv.bisect.command import Ran
from tfenv.bisect.journal import Journal
from tfenv.bisect.model import Change, Endpoint, Pin, PinSet
from tfenv.bisect.session import Search
from tfenv.bisect.testing import Tester, Trial
from tfenv.bisect.venv import BuildRefused, Built
from tfenv.bisect.world import World
from tfenv.errors import UsageError
from tfenv.simple_index import ProjectFile
from tfenv.wheel_tags import supported_tags

PLATFORM = "x86_64-manylinux_2_36"
START = datetime(2024, 1, 1, tzinfo=timezone.utc)
# Exit code of the command in an environment with these versions.
Status = Callable[[Mapping[str, str]], int]


def day(number: int) -> str:
    """The end of that day after the first."""
    return (START + timedelta(days=number)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Simulated:
    """An index, and a command.

    Args:
        releases: by package (version, day of upload); a package exists from its first release on.
        status: of the command.
        asks: Requires-Dist by ``name==version``; the resolver does not look at it.
        refuses: what an installer says of a set, empty for nothing.
        stop_at: the number of the build at which Ctrl-C comes.
    """

    releases: Mapping[str, Sequence[tuple[str, int]]]
    status: Status
    asks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refuses: Callable[[Mapping[str, str]], str] = lambda _: ""
    no_times: bool = False
    stop_at: int | None = None
    built: list[str] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)

    def files(self, name: str) -> list[ProjectFile]:
        """The project's page."""
        return [
            ProjectFile(
                filename=f"{name}-{version}-py3-none-any.whl",
                url="",
                hashes={},
                upload_time=None if self.no_times else day(on),
            )
            for version, on in self.releases.get(name, ())
        ]

    def resolve(self, end: Endpoint, lines: tuple[str, ...], when: str) -> PinSet:
        """The newest of each package that meets what is asked."""
        requirements = (*end.requirements, *lines)
        self.resolved.append(f"{when} {requirements}")
        wanted = [Requirement(text) for text in requirements]
        found = []
        for name, versions in self.releases.items():
            specs = [one.specifier for one in wanted if one.name == name]
            there = [v for v, on in versions if day(on) < when]
            fits = [v for v in there if all(spec.contains(v) for spec in specs)]
            if there and not fits:
                raise UsageError(f"no {name} meets it", remedy="ask for less")
            if fits:
                found.append(Pin(name=name, version=str(max(map(Version, fits)))))
        return PinSet.of(found)

    @contextmanager
    def build(self, pins: PinSet) -> Iterator[Built]:
        """An environment that is a dictionary."""
        versions = {pin.name: pin.version for pin in pins.pins}
        if self.stop_at is not None and len(self.built) >= self.stop_at:
            raise KeyboardInterrupt
        if why := self.refuses(versions):
            raise BuildRefused(why)
        self.built.append(pins.digest)
        requires = {pin.key: tuple(self.asks.get(pin.key, ())) for pin in pins.pins}
        yield Environment(requires, self.status(versions))

    def world(self) -> World:
        """The probes."""
        tags = supported_tags("3.11", PLATFORM)

        def moments(good: PinSet, bad: PinSet, since: str, until: str) -> tuple[str, ...]:
            return times.moments(good, bad, since, until, files=self.files, tags=tags)

        def between(change: Change, until: str) -> tuple[str, ...]:
            return times.versions_between(change, until, files=self.files, tags=tags)

        return World(
            resolve=self.resolve,
            moments=moments,
            between=between,
            pin_of=lambda name, version, _: Pin(name=name, version=version),
            builder=self,
        )


@dataclass(frozen=True)
class Environment:
    """One that exists."""

    requires: Mapping[str, tuple[str, ...]]
    status: int

    def run(self, command: Sequence[str], log: Path, timeout: float | None) -> Ran:
        """Ends at once."""
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"status {self.status}\n")
        return Ran(status=self.status, seconds=0.0, said=f"Error: {self.status}" if self.status else "")


def ends(world: Simulated, good: str, bad: str, *requirements: str) -> tuple[Endpoint, Endpoint]:
    """Two dates with what is asked for."""
    asked = requirements or tuple(world.releases)
    return (
        Endpoint(label="A", when=good, requirements=asked),
        Endpoint(label="B", when=bad, requirements=asked),
    )


def pinned(**versions: str) -> PinSet:
    """A set of pins without hashes."""
    return PinSet.of(Pin(name=name, version=version) for name, version in versions.items())


@contextmanager
def search(
    world: Simulated, good: Endpoint, bad: Endpoint, folder: Path, *, said: list[str] | None = None
) -> Iterator[Search]:
    """A search with its journal in that folder."""
    lines = [] if said is None else said
    with Journal(folder, {"simulated": 1}) as journal:
        tester = Tester(
            journal=journal,
            builder=world,
            trial=Trial(command=("it",)),
            rules=Rules({}, environment_of("3.11")),
            say=lines.append,
        )
        yield Search(good=good, bad=bad, world=world.world(), tester=tester, say=lines.append)
