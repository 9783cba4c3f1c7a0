"""What all stages of a search share: asking for verdicts and resolutions, and counting."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tfenv.bisect.journal import Journal, Refused
from tfenv.bisect.model import Endpoint, Pin, PinSet, Word
from tfenv.bisect.result import Counts, steps
from tfenv.bisect.testing import Say, Tester
from tfenv.bisect.world import World
from tfenv.errors import UsageError

_Q = TypeVar("_Q")
_A = TypeVar("_A")


@dataclass(frozen=True, kw_only=True)
class Span:
    """Two sets of pins, one good and one bad.

    Args:
        after, since: the moments that they are of (RFC 3339); may be empty.
    """

    good: PinSet
    bad: PinSet
    after: str = ""
    since: str = ""


@dataclass
class Inquiry:
    """Asks, keeps the answers, and counts."""

    world: World
    tester: Tester
    say: Say
    _candidates: list[int] = field(default_factory=list)
    _asked: int = 0

    @property
    def journal(self) -> Journal:
        """What is known."""
        return self.tester.journal

    def word(self, pins: PinSet, label: str, *, fits: frozenset[str] | None = None) -> Word:
        """The verdict on a set of pins; see ``testing.Tester.ask``."""
        self._asked += 1
        return self.tester.ask(pins, label, fits=fits).word

    def stage(self, candidates: int, what: str) -> None:
        """A stage begins that finds one of so many."""
        self._candidates.append(candidates)
        if candidates > 1:
            tests = steps(candidates)
            self.say(f"{what}: about {tests} test{'s' * (tests != 1)}")

    def drive(self, search: Generator[_Q, Word, _A], word: Callable[[_Q], Word]) -> _A:
        """Answer what a search asks, to its end."""
        try:
            question = next(search)
            while True:
                question = search.send(word(question))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def resolved(self, end: Endpoint, lines: Sequence[str], when: str) -> PinSet | Refused:
        """What an end's requirements and these lines resolve to at a moment."""
        wanted = (*end.requirements, *lines)

        def ask() -> PinSet:
            return self.world.resolve(end, tuple(lines), when)

        return self._kept(json.dumps([wanted, when]), ask)

    def pin(self, name: str, version: str, until: str) -> Pin | None:
        """One package at one version; None where there is none."""

        def ask() -> PinSet:
            return PinSet.of([self.world.pin_of(name, version, until)])

        known = self._kept(f"{name}=={version}", ask)
        return known.by_name.get(name) if isinstance(known, PinSet) else None

    def listed(self, key: str, ask: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """A list of an index."""
        known = self.journal.lists.get(key)
        if known is None:
            known = ask()
            self.journal.listing(key, known)
        return known

    def counts(self) -> Counts:
        """What it took so far, over all sessions."""
        verdicts = self.journal.verdicts.values()
        return Counts(
            candidates=sum(self._candidates),
            bound=sum(steps(count) for count in self._candidates),
            asked=self._asked,
            tests=sum(bool(v.log) for v in verdicts),
            builds=sum(v.built for v in verdicts),
            skipped=sum(v.word == "skip" for v in verdicts),
            seconds=sum(v.seconds for v in verdicts),
        )

    def _kept(self, key: str, ask: Callable[[], PinSet]) -> PinSet | Refused:
        known = self.journal.resolved.get(key)
        if known is None:
            try:
                known = ask()
            except UsageError as error:
                known = Refused(error.message)
            self.journal.resolution(key, known)
        return known
