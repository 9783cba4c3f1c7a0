"""What a bisection ends with."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

from tfenv.bisect.model import Change, PinSet


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """The smallest change of pins that was found to make the command fail.

    Args:
        changes: all of them are needed to fail, where ``exact``; else it is among them.
        along: changes that these cannot be without.
        exact: nothing was left open by tests that could not be judged.
        after, since: RFC 3339: still good then, bad since then; empty where dates had no say.
        keep_out: alternatives, each of one or more lines for a requirements file.
        why: how it fails, in one line. log: where all of it is, below the journal's folder.
    """

    changes: tuple[Change, ...]
    along: tuple[Change, ...] = ()
    exact: bool = True
    after: str = ""
    since: str = ""
    keep_out: tuple[tuple[str, ...], ...] = ()
    why: str = ""
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What it took, over all sessions.

    Args:
        candidates: environments among which the search had to find the one, summed over its stages.
        bound: the sum of the stages' ceil(log2(candidates)): the tests of a search that skips nothing.
        asked: tests that the search wanted of these; known answers are not asked again.
        tests: environments in which the command ran. builds: that were made.
        skipped: that could not be judged.
        seconds: of building and testing.
    """

    candidates: int = 0
    bound: int = 0
    asked: int = 0
    tests: int = 0
    builds: int = 0
    skipped: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Result:
    """The answer.

    Args:
        culprits: one for each thing that broke meanwhile, in the order found.
        last_good, first_bad: the sets around the first one.
        lines: what keeps all culprits out, together.
        cured: the bad end with these lines; None where no such set is known.
        cure: whether the command passes in it: ``good``, ``bad``, ``skip``; empty where it was not tried.
    """

    culprits: tuple[Culprit, ...]
    last_good: PinSet
    first_bad: PinSet
    lines: tuple[str, ...]
    cured: PinSet | None
    cure: str
    counts: Counts

    @property
    def exact(self) -> bool:
        """Whether every culprit is one change, or several that are needed together."""
        return all(culprit.exact for culprit in self.culprits)


def steps(candidates: int) -> int:
    """Tests that find one of so many by halving."""
    return ceil(log2(candidates)) if candidates > 1 else 0
