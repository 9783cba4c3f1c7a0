"""The search, pure: coroutines that yield what to test next and are sent the verdict.

They hold no state but their own course, which follows from the verdicts alone. So a search that was
killed goes on by being told again what is known (see ``journal``), and asks nothing twice.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from tfenv.bisect.model import Word


@dataclass(frozen=True)
class Transition:
    """Where good turns to bad in an ordered list.

    Args:
        good, bad: positions; everything tested between them could not be judged.
    """

    good: int
    bad: int

    @property
    def exact(self) -> bool:
        """Whether nothing lies between the two."""
        return self.bad - self.good == 1


@dataclass(frozen=True, kw_only=True)
class Smallest:
    """The smallest set of changes that was found to fail.

    Args:
        cores: each a block of changes that cannot be told apart (mostly one), all needed to fail.
        all: the cores with the changes that these need.
        good: changes with which it still passed, as many as were seen, next to ``bad``, with which it failed.
    """

    cores: tuple[tuple[int, ...], ...]
    all: frozenset[int]
    good: frozenset[int]
    bad: frozenset[int]

    @property
    def exact(self) -> bool:
        """Whether no skipped test left a block of more than one."""
        return all(len(core) == 1 for core in self.cores)


def transition(count: int) -> Generator[int, Word, Transition]:
    """Find a good candidate whose next one is bad, among ``count`` of which the first is good, the last bad.

    Takes ceil(log2(count - 1)) tests where nothing is skipped, whatever the order of the verdicts. A
    skipped candidate is never asked again: the next ones are spread over what is left, so that a whole
    stretch that cannot be judged is left quickly.
    """
    good, bad = 0, count - 1
    skipped: set[int] = set()
    while True:
        left = [i for i in range(good + 1, bad) if i not in skipped]
        if not left:
            return Transition(good, bad)
        misses = bad - good - 1 - len(left)
        aim = good + (bad - good) * _share(misses)
        chosen = min(left, key=lambda i: (abs(i - aim), i))
        word = yield chosen
        if word == "good":
            good = chosen
        elif word == "bad":
            bad = chosen
        else:
            skipped.add(chosen)


def smallest(needs: Sequence[frozenset[int]]) -> Generator[frozenset[int], Word, Smallest]:
    """Find a smallest set of changes that fails; none of them passes, all of them fail.

    Args:
        needs: for each change those that it cannot be without, itself among them. Ordered so that what a
            change needs comes before it; so everything asked for is a set that fits together.

    A single culprit of n takes ceil(log2(n)) tests to find and one to confirm. Where several changes are
    needed together each takes as many (as in QuickXplain: the next one is sought among those
    before the last one found). Verdicts that depend on chance or on more than the set end it as well.
    """
    required: frozenset[int] = frozenset()
    cores: list[tuple[int, ...]] = []
    room = list(range(len(needs)))
    passed: frozenset[int] = frozenset()
    failed = frozenset(room)
    while True:
        found = yield from _next_core(room, required)
        core = tuple(room[found.good : found.bad])
        if not cores:
            passed, failed = frozenset(room[: found.good]), frozenset(room[: found.bad])
        cores.append(core)
        required |= frozenset().union(*(needs[i] for i in core))
        room = [i for i in room[: found.good] if i not in required]
        # With nothing left to add it is what was seen to fail already.
        if not room or (yield required) == "bad":
            break
    kept = yield from _without_needless(cores, needs)
    return Smallest(cores=kept, all=_closed(kept, needs), good=passed, bad=failed)


def _next_core(room: Sequence[int], required: frozenset[int]) -> Generator[frozenset[int], Word, Transition]:
    """Which one of ``room``, added one after the other to what is required, makes it fail."""
    inner = transition(len(room) + 1)
    try:
        position = next(inner)
        while True:
            word = yield required | frozenset(room[:position])
            position = inner.send(word)
    except StopIteration as done:
        assert isinstance(done.value, Transition)
        return done.value


def _without_needless(
    cores: Sequence[tuple[int, ...]], needs: Sequence[frozenset[int]]
) -> Generator[frozenset[int], Word, tuple[tuple[int, ...], ...]]:
    """Leave out what it fails without; that can only be where verdicts are not monotonic."""
    kept, left = list(cores), list(cores)
    while left:
        core = left.pop(0)
        fewer = [other for other in kept if other != core]
        if fewer and (yield _closed(fewer, needs)) == "bad":
            kept, left = fewer, list(fewer)
    return tuple(kept)


def _closed(cores: Sequence[tuple[int, ...]], needs: Sequence[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*(needs[i] for core in cores for i in core))


def _share(misses: int) -> float:
    """Where to look after so many tests that could not be judged: first in the middle.

    Then in turn ever closer to both ends (1/4, 3/4, 1/8, 7/8, ...) and evenly all over: most often it is
    one stretch that cannot be judged, and the answer lies outside of it.
    """
    if not misses:
        return 0.5
    if misses % 2:
        power, side = divmod((misses - 1) // 2, 2)
        near = 0.5 ** (power + 2)
        return 1 - near if side else near
    return _spread(misses // 2)


def _spread(number: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8, 3/8, ...: van der Corput's sequence, which fills a stretch evenly."""
    value, part = 0.0, 0.5
    while number:
        value += part * (number & 1)
        number >>= 1
        part /= 2
    return value
