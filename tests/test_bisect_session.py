"""Whole bisections in simulated worlds."""

from __future__ import annotations

import random
from collections.abc import Mapping
from math import ceil, log2
from pathlib import Path

import pytest
from bisect_worlds import Simulated, day, ends, pinned, search
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tfenv.bisect.command import NotJudgedError
from tfenv.bisect.journal import NAME
from tfenv.bisect.model import Endpoint
from tfenv.bisect.result import Result
from tfenv.bisect.session import NothingFoundError
from tfenv.errors import UsageError

LAST = 400
# Each example is a whole bisection, with a disk that is told to write: not worth to be made smaller.
quick = settings(
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def many(seed: int, packages: int = 40) -> dict[str, list[tuple[str, int]]]:
    """So many packages with one to twelve releases each, the first before day 0."""
    chance = random.Random(seed)
    found = {}
    for number in range(packages):
        days = sorted(chance.sample(range(1, LAST), chance.randint(1, 12)))
        found[f"p{number}"] = [("1.0", -10), *((f"1.{i}", on) for i, on in enumerate(days, 1))]
    return found


def older(versions: Mapping[str, str], name: str, than: str) -> bool:
    return tuple(map(int, versions[name].split("."))) < tuple(map(int, than.split(".")))


def find(world: Simulated, tmp_path: Path, *more: str) -> Result:
    good, bad = ends(world, day(0), day(LAST), *more)
    with search(world, good, bad, tmp_path) as at_work:
        return at_work.find()


@quick
@given(seed=st.integers(0, 10**6), data=st.data())
def test_one_release_of_hundreds_is_found_in_log2_builds(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    releases = many(seed)
    name = data.draw(st.sampled_from(sorted(releases)))
    version, on = data.draw(st.sampled_from(releases[name][1:]))
    world = Simulated(releases, lambda has: 0 if older(has, name, version) else 1)
    result = find(world, tmp_path_factory.mktemp("one"))
    (culprit,) = result.culprits
    (change,) = culprit.changes
    assert (change.name, change.after and change.after.version) == (name, version)
    assert change.before and older({name: change.before.version}, name, version)
    assert culprit.exact and culprit.since >= day(on)
    assert result.lines == (f"{name}<{version}",)
    assert result.cure == "good" and result.cured is not None
    candidates = sum(len(r) - 1 for r in releases.values())
    # Both ends, the halving, packages that were released at the same moment, and the cure.
    assert len(world.built) <= 2 + ceil(log2(candidates)) + 3 + 1
    assert len(world.built) == result.counts.builds
    assert result.counts.asked <= result.counts.bound + 3


@quick
@given(seed=st.integers(0, 10**6), data=st.data())
def test_interrupted_anywhere_it_asks_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    releases = many(seed)
    name = data.draw(st.sampled_from(sorted(releases)))
    version, _ = data.draw(st.sampled_from(releases[name][1:]))

    def status(has: Mapping[str, str]) -> int:
        return 0 if older(has, name, version) else 1

    straight = Simulated(releases, status)
    expected = find(straight, tmp_path_factory.mktemp("straight"))
    folder = tmp_path_factory.mktemp("broken")
    world = Simulated(releases, status)
    stops = data.draw(st.lists(st.integers(0, len(straight.built) - 1), max_size=4))
    for stop in sorted(stops):
        world.stop_at = stop
        with pytest.raises(KeyboardInterrupt):
            find(world, folder)
        journal = folder / NAME
        cut = data.draw(st.integers(0, 40))  # a line that was being written when it ended
        journal.write_bytes(journal.read_bytes() + b'{"verdict": "torn", "word": "good", "why"'[:cut])
    world.stop_at = None
    again = find(world, folder)
    assert world.built == straight.built
    assert len(set(world.resolved)) == len(world.resolved)
    assert (again.culprits, again.lines, again.last_good) == (
        expected.culprits,
        expected.lines,
        expected.last_good,
    )


@quick
@given(seed=st.integers(0, 10**6), data=st.data())
def test_pins_alone_are_enough(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    """Two files of pins, no dates: packages first, then the versions of the one."""
    releases = many(seed)
    name = data.draw(st.sampled_from(sorted(releases)))
    version, _ = data.draw(st.sampled_from(releases[name][1:]))
    world = Simulated(releases, lambda has: 0 if older(has, name, version) else 1)
    good, bad = (world.resolve(Endpoint(label=""), (), when) for when in (day(0), day(LAST)))
    with search(
        world, Endpoint(label="A", pins=good), Endpoint(label="B", pins=bad), tmp_path_factory.mktemp("pins")
    ) as at_work:
        result = at_work.find()
    (change,) = result.culprits[0].changes
    assert (change.name, change.after and change.after.version) == (name, version)
    assert result.lines == (f"{name}<{version}",)
    assert result.cure == "good"
    assert result.cured is not None and result.cured.by_name[name].version == "1.0"
    assert len(world.built) <= 2 + ceil(log2(40)) + 1 + ceil(log2(13)) + 1


def test_two_things_that_broke_are_both_found(tmp_path: Path) -> None:
    releases = many(7)
    one, two = releases["p3"][-1][0], releases["p9"][-1][0]

    def status(has: Mapping[str, str]) -> int:
        return 0 if older(has, "p3", one) and older(has, "p9", two) else 1

    result = find(Simulated(releases, status), tmp_path)
    assert {c.changes[0].name for c in result.culprits} == {"p3", "p9"}
    assert set(result.lines) == {f"p3<{one}", f"p9<{two}"}
    assert result.cure == "good"


def test_two_things_that_fail_only_together(tmp_path: Path) -> None:
    world = Simulated({}, lambda has: int(has["a"] == has["b"] == "2"))
    good, bad = pinned(a="1", b="1", c="1", d="1"), pinned(a="2", b="2", c="2", d="2")
    with search(world, Endpoint(label="A", pins=good), Endpoint(label="B", pins=bad), tmp_path) as at_work:
        result = at_work.find()
    (culprit,) = result.culprits
    assert {change.name for change in culprit.changes} == {"a", "b"}
    assert culprit.exact
    assert set(culprit.keep_out) == {("a<2",), ("b<2",)}
    assert len(result.lines) == 1  # one of them is enough
    assert result.cure == "good"


def test_packages_that_only_fit_together_are_changed_together(tmp_path: Path) -> None:
    """The resolver's refusals are respected: no build is wasted on a mixture that cannot be."""
    asks = {"a==1": ("b<2",), "a==2": ("b>=2",), "c==2": ("a>=2",)}
    seen: list[Mapping[str, str]] = []

    def status(has: Mapping[str, str]) -> int:
        seen.append(has)
        return int(has["b"] == "2")

    good, bad = pinned(a="1", b="1", c="1", d="1"), pinned(a="2", b="2", c="2", d="2")
    world = Simulated({}, status, asks)
    with search(world, Endpoint(label="A", pins=good), Endpoint(label="B", pins=bad), tmp_path) as at_work:
        result = at_work.find()
    assert {change.name for change in result.culprits[0].changes} == {"a", "b"}
    assert all(has["a"] == has["b"] and not (has["c"] == "2" and has["a"] == "1") for has in seen)


def test_what_cannot_be_installed_is_skipped_not_judged(tmp_path: Path) -> None:
    releases = {"a": [("1", -1), *((f"1.{i}", i) for i in range(1, 40))]}
    world = Simulated(
        releases,
        lambda has: 0 if older(has, "a", "1.30") else 1,
        refuses=lambda has: "gone" if has["a"] in ("1.19", "1.20", "1.21") else "",
    )
    result = find(world, tmp_path)
    assert result.lines == ("a<1.30",)
    assert result.exact


def test_where_the_turn_cannot_be_judged_it_says_between_what(tmp_path: Path) -> None:
    world = Simulated(
        {"a": [(f"1.{i}", i - 1) for i in range(20)]},
        lambda has: 125 if has["a"] in ("1.9", "1.10", "1.11") else int(not older(has, "a", "1.10")),
    )
    result = find(world, tmp_path)
    (change,) = result.culprits[0].changes
    assert change.before and change.after
    assert (change.before.version, change.after.version) == ("1.8", "1.12")
    assert result.lines == ("a<1.9",)  # nothing that is not known to be good
    assert result.counts.skipped >= 3


def test_days_on_which_nothing_resolves_are_skipped(tmp_path: Path) -> None:
    world = Simulated(many(3), lambda has: 0 if older(has, "p1", "1.1") else 1)
    usual = world.resolve

    def resolve(end: Endpoint, lines: tuple[str, ...], when: str) -> object:
        if day(150) < when < day(250):
            raise UsageError("no solution", remedy="none")
        return usual(end, lines, when)

    world.resolve = resolve  # type: ignore[method-assign, assignment]
    result = find(world, tmp_path)
    assert result.culprits[0].changes[0].name == "p1"


def test_an_index_without_times_is_searched_by_packages(tmp_path: Path) -> None:
    said: list[str] = []
    world = Simulated({"a": [("1", -1), ("2", 5)], "b": [("1", -1), ("2", 7)]}, lambda h: int(h["b"] == "2"))
    world.no_times = True
    good, bad = ends(world, day(0), day(9))
    with search(world, good, bad, tmp_path, said=said) as at_work:
        result = at_work.find()
    assert result.lines == ("b<2",)
    assert any("no search along dates" in line for line in said)


def test_a_repair_is_found_as_well(tmp_path: Path) -> None:
    """The good end is the later one: what made it work?"""
    releases = {"a": [("1", -1), ("2", 5), ("3", 8)], "b": [("1", -1), ("2", 7)]}
    world = Simulated(releases, lambda has: int(has["a"] != "3"))
    bad, good = ends(world, day(0), day(9))
    with search(world, good, bad, tmp_path) as at_work:
        result = at_work.find()
    (change,) = result.culprits[0].changes
    assert str(change) == "a 3 -> 2"
    assert result.lines == ("a>2",)


def test_a_package_that_came_along_and_one_that_went(tmp_path: Path) -> None:
    asks = {"app==2": ("new",)}
    world = Simulated({}, lambda has: int("new" in has), asks)
    good, bad = pinned(app="1", x="1", old="1"), pinned(app="2", x="2", new="1")
    with search(world, Endpoint(label="A", pins=good), Endpoint(label="B", pins=bad), tmp_path) as at_work:
        result = at_work.find()
    assert [str(c) for c in result.culprits[0].changes] == ["new 1, which was not there before"]
    assert result.lines == ("app<2",)
    assert result.cure == "good"
    gone = Simulated({}, lambda has: int("old" not in has), asks)
    with search(
        gone, Endpoint(label="A", pins=good), Endpoint(label="B", pins=bad), tmp_path / "2"
    ) as at_work:
        assert at_work.find().lines == ("old==1",)


@pytest.mark.parametrize(
    ("status", "match"),
    [(lambda _: 1, "was to be good"), (lambda _: 0, "was to be bad"), (lambda _: 125, "cannot be judged")],
)
def test_the_ends_are_looked_at_first(tmp_path: Path, status: object, match: str) -> None:
    world = Simulated({"a": [("1", -1), ("2", 3)]}, status)  # type: ignore[arg-type]
    with pytest.raises(NothingFoundError, match=match):
        find(world, tmp_path)
    assert len(world.built) <= 2


def test_ends_that_are_the_same_are_no_question(tmp_path: Path) -> None:
    world = Simulated({"a": [("1", -1)]}, lambda _: 1)
    with pytest.raises(NothingFoundError, match="same packages"):
        find(world, tmp_path)
    assert not world.built


def test_a_day_before_everything(tmp_path: Path) -> None:
    world = Simulated({"a": [("1", -1), ("2", 3)]}, lambda _: 0)
    with pytest.raises(UsageError, match="cannot be met"):
        find(world, tmp_path, "a>5")


def test_a_command_that_says_nothing_stops_it_and_is_asked_again(tmp_path: Path) -> None:
    world = Simulated({"a": [("1", -1), ("2", 3)]}, lambda _: 127)
    for _ in range(2):
        with pytest.raises(NotJudgedError):
            find(world, tmp_path)
    assert len(world.built) == 2


def test_versions_that_were_uploaded_out_of_order(tmp_path: Path) -> None:
    """2 was the first to fail, but 1.5 came later and fails as well: the line keeps both out."""
    world = Simulated({"a": [("1", -1), ("2", 3), ("1.5", 5)]}, lambda has: int(has["a"] != "1"))
    result = find(world, tmp_path)
    assert [str(c.changes[0]) for c in result.culprits] == ["a 1 -> 1.5"]
    assert (result.lines, result.cure) == (("a<1.5",), "good")


def test_a_line_that_is_not_enough_is_told(tmp_path: Path) -> None:
    """One kept out, the other fails still; and where the resolver has no answer, nothing was tested."""
    world = Simulated(
        {"a": [("1", -1), ("2", 3)], "b": [("1", -1), ("2", 4)]}, lambda h: int("2" in h.values())
    )
    result = find(world, tmp_path)
    assert result.lines == ("a<2", "b<2")
    usual = world.resolve

    def resolve(end: Endpoint, lines: tuple[str, ...], when: str) -> object:
        if lines:
            raise UsageError("no solution with that", remedy="none")
        return usual(end, lines, when)

    world.resolve = resolve  # type: ignore[method-assign, assignment]
    untested = find(world, tmp_path / "2")
    assert (untested.lines, untested.cure, untested.cured) == (("a<2",), "", None)
