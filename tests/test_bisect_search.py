"""The pure search, against simulated worlds."""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import ceil, log2
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from tfenv.bisect.model import Word
from tfenv.bisect.search import smallest, transition

_Q = TypeVar("_Q")
_A = TypeVar("_A")


def drive(search: Generator[_Q, Word, _A], world: Callable[[_Q], Word]) -> tuple[_A, list[_Q]]:
    """The answer, and what was asked."""
    asked: list[_Q] = []
    try:
        question = next(search)
        while True:
            asked.append(question)
            question = search.send(world(question))
    except StopIteration as done:
        return done.value, asked


@settings(deadline=None)
@given(st.integers(2, 2000), st.data())
def test_one_turn_is_found_in_log2_tests(count: int, data: st.DataObject) -> None:
    first_bad = data.draw(st.integers(1, count - 1))
    found, asked = drive(transition(count), lambda i: "bad" if i >= first_bad else "good")
    assert (found.good, found.bad, found.exact) == (first_bad - 1, first_bad, True)
    assert len(asked) <= ceil(log2(count))
    assert len(set(asked)) == len(asked)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["good", "bad", "skip"]), min_size=0, max_size=60))
def test_whatever_the_verdicts_good_turns_to_bad_there(inner: list[Word]) -> None:
    world: list[Word] = ["good", *inner, "bad"]
    found, asked = drive(transition(len(world)), world.__getitem__)
    assert world[found.good] == "good"
    assert world[found.bad] == "bad"
    assert all(world[i] == "skip" for i in range(found.good + 1, found.bad))
    assert len(set(asked)) == len(asked)
    assert not {0, len(world) - 1} & set(asked)


@settings(deadline=None)
@given(st.integers(8, 800), st.data())
def test_a_stretch_that_cannot_be_judged_is_left_quickly(count: int, data: st.DataObject) -> None:
    """The stretch is in the middle, the turn outside of it."""
    start, end = count // 3, 2 * count // 3
    first_bad = data.draw(st.sampled_from([*range(1, start), *range(end + 2, count)]))

    def world(i: int) -> Word:
        if start <= i <= end:
            return "skip"
        return "bad" if i >= first_bad else "good"

    found, asked = drive(transition(count), world)
    assert (found.good, found.bad) == (first_bad - 1, first_bad)
    assert len(asked) <= 6 * ceil(log2(count))


def needs_of(count: int, data: st.DataObject) -> list[frozenset[int]]:
    """What each change cannot be without: earlier ones, and what these need."""
    needs: list[frozenset[int]] = []
    for i in range(count):
        direct = data.draw(st.sets(st.integers(0, i - 1), max_size=2)) if i else set()
        needs.append(frozenset({i}).union(*(needs[j] for j in direct)))
    return needs


def is_closed(chosen: frozenset[int], needs: list[frozenset[int]]) -> bool:
    return all(needs[i] <= chosen for i in chosen)


@settings(deadline=None)
@given(st.integers(1, 120), st.data())
def test_one_culprit_takes_log2_tests_and_one(count: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    needs = [frozenset({i}) for i in range(count)]
    found, asked = drive(smallest(needs), lambda chosen: "bad" if culprit in chosen else "good")
    assert found.cores == ((culprit,),)
    assert found.all == {culprit}
    assert len(asked) <= ceil(log2(count + 1)) + 1
    assert culprit in found.bad and culprit not in found.good


@settings(deadline=None)
@given(st.integers(1, 30), st.data())
def test_what_is_found_is_minimal_and_fits_together(count: int, data: st.DataObject) -> None:
    """It fails when all of some changes are there; none of what is found can be left out."""
    needs = needs_of(count, data)
    culprits = frozenset(data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3)))

    def world(chosen: frozenset[int]) -> Word:
        assert is_closed(chosen, needs), "only sets that fit together are asked for"
        return "bad" if culprits <= chosen else "good"

    found, asked = drive(smallest(needs), world)
    assert found.exact
    assert found.all == frozenset().union(*(needs[i] for i in culprits))
    assert {i for core in found.cores for i in core} <= culprits
    for core in found.cores:
        others = frozenset().union(*(needs[i] for other in found.cores if other != core for i in other))
        assert not culprits <= others
    assert len(asked) <= len(culprits) * (ceil(log2(count + 1)) + 2)


@settings(deadline=None)
@given(st.integers(1, 24), st.data())
def test_any_reason_gives_a_set_that_fails_and_without_each_part_does_not(
    count: int, data: st.DataObject
) -> None:
    """Monotonic worlds with several reasons to fail: each of them is a set."""
    needs = needs_of(count, data)
    sets = st.sets(st.integers(0, count - 1), min_size=1, max_size=4)
    reasons = data.draw(st.lists(sets, min_size=1, max_size=3))

    def fails(chosen: frozenset[int]) -> bool:
        return any(reason <= chosen for reason in reasons)

    found, _ = drive(smallest(needs), lambda chosen: "bad" if fails(chosen) else "good")
    assert fails(found.all)
    assert fails(found.bad) and not fails(found.good)
    for core in found.cores:
        assert not fails(
            frozenset().union(*(needs[i] for other in found.cores if other != core for i in other))
        )


@settings(deadline=None)
@given(st.integers(1, 40), st.data())
def test_what_cannot_be_judged_is_never_taken_for_a_verdict(count: int, data: st.DataObject) -> None:
    needs = [frozenset({i}) for i in range(count)]
    culprit = data.draw(st.integers(0, count - 1))
    untold = data.draw(st.sets(st.integers(1, count), max_size=count))

    def world(chosen: frozenset[int]) -> Word:
        if len(chosen) in untold and len(chosen) < count:
            return "skip"
        return "bad" if culprit in chosen else "good"

    found, _ = drive(smallest(needs), world)
    assert culprit in found.all
    assert culprit not in found.good


@settings(deadline=None)
@given(st.integers(1, 12), st.randoms(use_true_random=False))
def test_verdicts_by_chance_end_it_too(count: int, chance: object) -> None:
    needs = [frozenset({i}) for i in range(count)]
    words: list[Word] = ["good", "bad", "skip"]
    known: dict[frozenset[int], Word] = {}

    def world(chosen: frozenset[int]) -> Word:
        return known.setdefault(chosen, chance.choice(words))  # type: ignore[attr-defined]

    found, asked = drive(smallest(needs), world)
    assert found.all
    assert len(asked) <= 20 * count + 20


def test_two_changes_that_fail_together() -> None:
    needs = [frozenset({i}) for i in range(10)]
    found, _ = drive(smallest(needs), lambda chosen: "bad" if {2, 7} <= chosen else "good")
    assert set(found.cores) == {(2,), (7,)}


def test_one_change_needs_no_test() -> None:
    found, asked = drive(smallest([frozenset({0})]), lambda chosen: "bad")
    assert (found.cores, found.exact, asked) == (((0,),), True, [])
