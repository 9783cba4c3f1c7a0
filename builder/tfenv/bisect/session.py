"""The whole search: both ends, then dates, then packages, then versions of the one package; then the cure.

Each stage starts where the one before it ended. Whether the line that keeps the culprit out does so is
tested, too: often more than one thing broke meanwhile, and then the search goes on with it kept out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tfenv.bisect.changes import changes
from tfenv.bisect.dates import by_dates
from tfenv.bisect.inquiry import Inquiry, Span
from tfenv.bisect.journal import Refused
from tfenv.bisect.model import Endpoint, PinSet, Word
from tfenv.bisect.packages import Found, by_packages
from tfenv.bisect.result import Culprit, Result
from tfenv.bisect.testing import Say, Tester, failing_line
from tfenv.bisect.world import World
from tfenv.errors import TfenvError, UsageError


class NothingFoundError(TfenvError):
    """The ends are not what the user said they are, so there is no change to find."""


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
    inquiry: Inquiry = field(init=False)

    def __post_init__(self) -> None:
        self.inquiry = Inquiry(world=self.world, tester=self.tester, say=self.say)

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
        return self._rounds(Span(good=good, bad=bad, after=self.good.when, since=self.bad.when))

    def _rounds(self, whole: Span) -> Result:
        """One culprit after the other, until the bad end passes without them."""
        culprits: list[Culprit] = []
        lines: tuple[str, ...] = ()
        around: Span | None = None
        span, seen = whole, {whole.bad.digest}
        while True:
            days = by_dates(self.inquiry, self.good, self.bad, span, _without_hashes(lines))
            found = by_packages(self.inquiry, days, self.bad.when)
            culprits.append(found.culprit)
            around = around or found.around
            lines += found.culprit.keep_out[0] if found.culprit.keep_out else ()
            cured, cure = self._cured(found, lines), ""
            if cured is not None and cured.digest not in seen:
                seen.add(cured.digest)
                kept_out = ", ".join(_without_hashes(lines)) or "the culprit taken back"
                cure = self.inquiry.word(cured, f"{self.bad.label} with {kept_out}")
            if cured is None or cure != "bad":
                return Result(
                    culprits=tuple(culprits),
                    last_good=around.good,
                    first_bad=around.bad,
                    lines=lines,
                    cured=cured if cure else None,
                    cure=cure,
                    counts=self.inquiry.counts(),
                )
            self.say("that is not all that broke: the search goes on with it kept out")
            # What was still good when the first thing broke, is good without it, too.
            span = replace(days, bad=cured, since=whole.since)

    def _end(self, end: Endpoint) -> PinSet:
        if end.pins is not None:
            return end.pins
        answer = self.inquiry.resolved(end, (), end.when)
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
        if verdict.word == "skip":
            raise NothingFoundError(
                f"{label} cannot be judged: {verdict.why}", remedy="choose another end, or another command"
            )
        if wanted == "good":
            told = failing_line(verdict, self.tester.journal.folder, self.tester.trial.command)
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

    def _cured(self, found: Found, lines: tuple[str, ...]) -> PinSet | None:
        """The bad end with the culprit kept out; None where it is not known."""
        culprit = found.culprit
        hashed = any("--hash" in line for line in lines)  # no resolver takes these
        if self.bad.requirements and self.bad.when and culprit.keep_out and not hashed:
            answer = self.inquiry.resolved(self.bad, lines, self.bad.when)
            if isinstance(answer, PinSet):
                return answer
        if self.bad.pins is None:
            return None  # what is left is of the day on which it broke, not of the end
        return found.without(culprit.changes[:1] if culprit.exact else culprit.changes)


def _without_hashes(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line.partition(" --hash")[0] for line in lines)
