"""The whole search: both ends, then dates, then packages, then versions of the one package; then the cure.

Each stage starts where the one before it ended. Whether the line that keeps the culprit out does so is
tested, too: often more than one thing broke meanwhile, and then the search goes on with it kept out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tfenv.bisect.changes import Chain, Group, Rules, chain, changes, mixture
from tfenv.bisect.constraint import constraints
from tfenv.bisect.journal import Journal, Refused
from tfenv.bisect.model import Change, Endpoint, Pin, PinSet, Word
from tfenv.bisect.result import Counts, Culprit, Result, steps
from tfenv.bisect.search import Transition, smallest, transition
from tfenv.bisect.testing import Say, Tester, failing_line
from tfenv.bisect.world import World
from tfenv.errors import NotReadyError, TfenvError, UsageError

_Q = TypeVar("_Q")
_A = TypeVar("_A")


class NothingFoundError(TfenvError):
    """The ends are not what the user said they are, so there is no change to find."""


@dataclass(frozen=True, kw_only=True)
class _Span:
    """Two sets of pins, good and bad, and the moments that they are of (may be empty)."""

    good: PinSet
    bad: PinSet
    after: str = ""
    since: str = ""


@dataclass
class Search:
    """One question on its way to an answer.

    Args:
        good, bad: the ends as the user named them.
    """

    good: Endpoint
    bad: Endpoint
    world: World
    tester: Tester
    say: Say
    _candidates: list[int] = field(default_factory=list)
    _asked: int = 0

    @property
    def journal(self) -> Journal:
        """What is known."""
        return self.tester.journal

    def find(self) -> Result:
        """Search to the end.

        Raises:
            NothingFoundError: the good end fails or the bad one passes. UsageError: an end is no environment.
            NotJudgedError, NotReadyError: it cannot go on now; what is known is kept.
        """
        good, bad = self._end(self.good), self._end(self.bad)
        if not changes(good, bad):
            raise NothingFoundError(
                f"{self.good.label} and {self.bad.label} have the same packages ({len(good.pins)})",
                remedy="what broke is no package of Python: see the driver, the data or the code",
            )
        self._expect(good, self.good.label, "good")
        self._expect(bad, self.bad.label, "bad")
        span = _Span(good=good, bad=bad, after=self.good.when, since=self.bad.when)
        return self._rounds(span)

    def _rounds(self, whole: _Span) -> Result:
        culprits: list[Culprit] = []
        lines: tuple[str, ...] = ()
        around: _Span | None = None
        span, seen = whole, {whole.bad.digest}
        while True:
            days = self._dates(span, lines)
            culprit, pair, rest = self._packages(days)
            culprits.append(culprit)
            around = around or pair
            lines += culprit.keep_out[0] if culprit.keep_out else ()
            cured = self._cured(culprit, lines, rest)
            cure: str = ""
            if cured is not None and cured.digest not in seen:
                seen.add(cured.digest)
                label = f"{self.bad.label} with {', '.join(_plain(lines)) or 'the culprit taken back'}"
                cure = self._word(cured, label)
            if cured is None or cure != "bad":
                return Result(
                    culprits=tuple(culprits),
                    last_good=around.good,
                    first_bad=around.bad,
                    lines=lines,
                    cured=cured if cure else None,
                    cure=cure,
                    counts=self._counts(),
                )
            self.say("that is not all that broke: the search goes on with it kept out")
            span = replace(whole, bad=cured)

    # The ends

    def _end(self, end: Endpoint) -> PinSet:
        if end.pins is not None:
            return end.pins
        answer = self._resolved(end, (), end.when)
        if isinstance(answer, Refused):
            raise UsageError(
                f"as of {end.label} the requirements cannot be met:\n{answer.why}",
                remedy="choose a later day, on which all that is asked for had been released",
            )
        return answer

    def _expect(self, pins: PinSet, label: str, wanted: Word) -> None:
        verdict = self.tester.ask(pins, label)
        if verdict.word == wanted:
            return
        told = failing_line(verdict, self.journal.folder, self.tester.trial.command)
        if verdict.word == "skip":
            raise NothingFoundError(
                f"{label} cannot be judged: {verdict.why}", remedy="choose another end, or another command"
            )
        if wanted == "good":
            raise NothingFoundError(
                f"{label} was to be good, but the command fails there\n{told}",
                remedy="choose an earlier day or an older lock; where it fails everywhere, the command or "
                "the host is the cause",
            )
        raise NothingFoundError(
            f"{label} was to be bad, but the command passes there",
            remedy="what broke is no package of Python (see driver, data and code), or it fails by chance: "
            "--repeat 10",
        )

    # Dates

    def _dates(self, span: _Span, lines: tuple[str, ...]) -> _Span:
        """Narrow the ends down along the days between them."""
        same = (self.good.requirements, self.good.from_source) == (
            self.bad.requirements,
            self.bad.from_source,
        )
        if not (span.after and span.since and span.after != span.since and self.bad.requirements and same):
            return span
        key = f"moments {span.good.digest} {span.bad.digest}"
        moments = self.journal.lists.get(key)
        if moments is None:
            try:
                moments = self.world.moments(span.good, span.bad, span.after, span.since)
            except (LookupError, NotReadyError) as error:
                self.say(f"no search along dates: {error}")
                return span
            self.journal.listing(key, moments)
        whens = (span.after, *moments, span.since)
        self._stage(len(moments) + 1, f"{len(moments)} moments from {span.after[:10]} to {span.since[:10]}")

        def at(position: int) -> PinSet | Refused:
            if position == 0:
                return span.good
            if position == len(whens) - 1:
                return span.bad
            return self._resolved(self.bad, lines, whens[position])

        def word(position: int) -> Word:
            pins = at(position)
            if isinstance(pins, Refused):
                return "skip"
            if pins.digest == span.good.digest:
                return "good"
            return self._word(pins, whens[position].replace("T", " ").rstrip("Z"))

        found = self._drive(transition(len(whens)), word)
        low, high = at(found.good), at(found.bad)
        assert isinstance(low, PinSet) and isinstance(high, PinSet)
        self.say(f"good until {whens[found.good]}, bad from {whens[found.bad]}")
        return _Span(good=low, bad=high, after=whens[found.good], since=whens[found.bad])

    def _resolved(self, end: Endpoint, lines: tuple[str, ...], when: str) -> PinSet | Refused:
        wanted = (*end.requirements, *_plain(lines))
        key = json.dumps([wanted, when])
        known = self.journal.resolved.get(key)
        if known is not None:
            return known
        answer: PinSet | Refused
        try:
            answer = self.world.resolve(wanted, end.from_source, when)
        except UsageError as error:
            answer = Refused(error.message)
        self.journal.resolution(key, answer)
        return answer

    # Packages

    def _packages(self, span: _Span) -> tuple[Culprit, _Span, Callable[[Sequence[Change]], PinSet]]:
        """The culprit between two sets; the two sets around it; and what makes the bad set without some."""
        differ = changes(span.good, span.bad)
        rules = replace(self.tester.rules, requires=self.journal.requires)
        links = chain(differ, span.good, span.bad, rules)
        vouched = self.tester.misfits(span.good) | self.tester.misfits(span.bad)
        self._stage(len(links.groups), f"{len(differ)} changed packages, in {len(links.groups)} groups")

        def mixed(chosen: frozenset[int]) -> PinSet:
            return mixture(span.good, (c for i in sorted(chosen) for c in links.groups[i].changes))

        def word(chosen: frozenset[int]) -> Word:
            label = _label([links.groups[i] for i in sorted(chosen)])
            return self._word(mixed(chosen), label, fits=vouched)

        found = self._drive(smallest(links.needs), word)
        cores = [tuple(c for i in core for c in links.groups[i].changes) for core in found.cores]
        named = {change.name for core in cores for change in core}
        along = tuple(c for i in sorted(found.all) for c in links.groups[i].changes if c.name not in named)
        pair = _Span(good=mixed(found.good), bad=mixed(found.bad), after=span.after, since=span.since)
        exact, first = found.exact, cores[0][0]
        limit: Pin | None = None
        if exact and len(cores) == 1 and len(cores[0]) == 1 and first.before and first.after:
            change, limit, pair = self._versions(first, pair, vouched)
            cores = [(change,)]
        verdict = self.journal.verdicts.get(pair.bad.digest)
        culprit = Culprit(
            changes=tuple(change for core in cores for change in core),
            along=along,
            exact=exact,
            after=span.after,
            since=span.since,
            keep_out=_keep_out(cores, span, rules, limit=limit, exact=exact),
            why=verdict.why if verdict else "",
            log=verdict.log if verdict else "",
        )

        def without(culprits: Sequence[Change]) -> PinSet:
            return mixed(_not_needing({change.name for change in culprits}, links))

        return culprit, pair, without

    def _versions(
        self, change: Change, pair: _Span, vouched: frozenset[str]
    ) -> tuple[Change, Pin | None, _Span]:
        """Narrow one package down to two neighbouring versions; also the first not known to be good."""
        assert change.before is not None and change.after is not None
        key = f"versions {change}"
        between = self.journal.lists.get(key)
        if between is None:
            try:
                between = self.world.between(change, self.bad.when)
            except NotReadyError as error:
                self.say(f"no search among the versions of {change.name}: {error.message}")
                return change, None, pair
            self.journal.listing(key, between)
        if not between:
            return change, None, pair
        self._stage(
            len(between) + 1,
            f"{len(between)} versions of {change.name} between {change.before.version} "
            f"and {change.after.version}",
        )
        versions = (change.before.version, *between, change.after.version)

        def at(position: int) -> Pin | None:
            if position == 0:
                return change.before
            if position == len(versions) - 1:
                return change.after
            return self._pin(change.name, versions[position])

        def word(position: int) -> Word:
            pin = at(position)
            if pin is None:
                return "skip"
            return self._word(_with(pair.good, pin), f"{pin.name} {pin.version}", fits=vouched)

        found: Transition = self._drive(transition(len(versions)), word)
        before, after = at(found.good), at(found.bad)
        assert before is not None and after is not None
        limit = Pin(name=change.name, version=versions[found.good + 1])
        low = pair.good if found.good == 0 else _with(pair.good, before)
        high = pair.bad if found.bad == len(versions) - 1 else _with(pair.good, after)
        span = replace(pair, good=low, bad=high)
        return Change(name=change.name, before=before, after=after), limit, span

    def _pin(self, name: str, version: str) -> Pin | None:
        key = f"{name}=={version}"
        known = self.journal.resolved.get(key)
        if known is None:
            try:
                known = PinSet.of([self.world.pin_of(name, version, self.bad.when)])
            except UsageError as error:
                known = Refused(error.message)
            self.journal.resolution(key, known)
        return known.by_name.get(name) if isinstance(known, PinSet) else None

    # The cure

    def _cured(
        self, culprit: Culprit, lines: tuple[str, ...], rest: Callable[[Sequence[Change]], PinSet]
    ) -> PinSet | None:
        """The bad end with the culprit kept out."""
        if self.bad.requirements and self.bad.when and lines and culprit.keep_out:
            answer = self._resolved(self.bad, lines, self.bad.when)
            if isinstance(answer, PinSet) and all("--hash" not in line for line in lines):
                return answer
        if self.bad.pins is None:
            return None  # of the day on which it broke, not of the end
        return rest(culprit.changes if not culprit.exact else culprit.changes[:1])

    # What all stages share

    def _word(self, pins: PinSet, label: str, *, fits: frozenset[str] | None = None) -> Word:
        self._asked += 1
        return self.tester.ask(pins, label, fits=fits).word

    def _stage(self, candidates: int, what: str) -> None:
        self._candidates.append(candidates)
        if candidates > 1:
            self.say(f"{what}: about {steps(candidates)} tests")

    def _drive(self, search: Generator[_Q, Word, _A], word: Callable[[_Q], Word]) -> _A:
        try:
            question = next(search)
            while True:
                question = search.send(word(question))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def _counts(self) -> Counts:
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


def _with(pins: PinSet, pin: Pin) -> PinSet:
    return PinSet.of({**pins.by_name, pin.name: pin}.values())


def _plain(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines without hashes, for a resolver and for people."""
    return tuple(line.partition(" --hash")[0] for line in lines)


def _label(groups: Sequence[Group]) -> str:
    if len(groups) == 1:
        return f"with {groups[0]}"
    return f"with {len(groups)} changes, up to {groups[-1]}"


def _not_needing(names: set[str], links: Chain) -> frozenset[int]:
    """All groups but those that hold, or cannot be without, one of these packages."""
    out = {i for i, group in enumerate(links.groups) if any(c.name in names for c in group.changes)}
    return frozenset(i for i, needs in enumerate(links.needs) if not needs & out)


def _keep_out(
    cores: Sequence[Sequence[Change]], span: _Span, rules: Rules, *, limit: Pin | None, exact: bool
) -> tuple[tuple[str, ...], ...]:
    """The alternatives: where several changes are needed to fail, one of them kept out is enough."""

    def lines(change: Change) -> tuple[str, ...]:
        tight = replace(change, after=limit) if limit else change
        return constraints(tight, span.good, span.bad, rules)

    if not exact:  # it is one of these, nobody knows which
        every = tuple(line for core in cores for change in core for line in lines(change))
        return (tuple(dict.fromkeys(every)),) if every else ()
    # Changes that are only to be had together go together, so one of them speaks for all.
    told = (next((found for change in core if (found := lines(change))), ()) for core in cores)
    return tuple(alternative for alternative in told if alternative)
