"""What differs between two sets of pins, what fits together, and the line that keeps something out."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from tfenv.bisect.changes import (
    Rules,
    chain,
    changes,
    conflicts,
    environment_of,
    mixture,
)
from tfenv.bisect.constraint import constraints
from tfenv.bisect.model import Change, Pin, PinSet, pins_from_plain, pins_to_plain

ENVIRONMENT = environment_of("3.11")


def pins(text: str) -> PinSet:
    """``a==1 b==2`` as a set."""
    found = (word.split("==") for word in text.split())
    return PinSet.of(Pin(name=name, version=version) for name, version in found)


def rules(asks: Mapping[str, tuple[str, ...]] | None = None, asked: tuple[str, ...] = ()) -> Rules:
    return Rules(asks or {}, ENVIRONMENT, asked)


def test_what_differs() -> None:
    found = changes(pins("a==1 b==1 gone==1"), pins("a==1 b==2 new==3"))
    assert [str(change) for change in found] == [
        "b 1 -> 2",
        "gone 1, which is no longer there",
        "new 3, which was not there before",
    ]


def test_another_file_of_the_same_version_is_a_change() -> None:
    one, two = (PinSet.of([Pin(name="a", version="1", hashes=(sha * 64,))]) for sha in "ab")
    (change,) = changes(one, two)
    assert "another file" in str(change)
    assert not changes(one, pins("a==1"))  # who names no hash takes either


def test_a_mixture_has_what_was_chosen() -> None:
    good, bad = pins("a==1 b==1 gone==1"), pins("a==2 b==2 new==3")
    differ = changes(good, bad)
    assert mixture(good, differ) == bad
    assert mixture(good, ()) == good
    assert mixture(good, [c for c in differ if c.name in ("a", "gone")]) == pins("a==2 b==1")


def groups(good: PinSet, bad: PinSet, asks: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    links = chain(changes(good, bad), good, bad, rules(asks))
    return [[change.name for change in group.changes] for group in links.groups]


def test_what_a_new_version_asks_for_comes_before_it() -> None:
    good, bad = pins("app==1 lib==1"), pins("app==2 lib==2")
    assert groups(good, bad, {"app==2": ("lib>=2",)}) == [["lib"], ["app"]]
    assert groups(good, bad, {"app==1": ("lib<2",)}) == [["app"], ["lib"]]
    assert groups(good, bad, {"app==2": ("lib>=1",)}) == [["app"], ["lib"]]  # no bond: by name


def test_what_is_only_to_be_had_together_is_one_group() -> None:
    good, bad = pins("app==1 lib==1 other==1"), pins("app==2 lib==2 other==2")
    found = groups(good, bad, {"app==1": ("lib<2",), "app==2": ("lib>=2",)})
    assert sorted(map(sorted, found)) == [["app", "lib"], ["other"]]


def test_a_new_package_comes_before_what_needs_it() -> None:
    assert groups(pins("app==1"), pins("app==2 new==1"), {"app==2": ("new",)}) == [["new"], ["app"]]
    assert groups(pins("app==1 old==1"), pins("app==2"), {"app==1": ("old",)}) == [["app"], ["old"]]


def test_markers_and_extras_count_as_they_do_for_an_installer() -> None:
    good, bad = pins("a==1 app==1 b==1"), pins("a==2 app==2 b==2")
    asks = {"app==2": ('b>=2; python_version < "3"', 'b>=2; extra == "more"', "no requirement at all!")}
    assert groups(good, bad, asks) == [["a"], ["app"], ["b"]]
    asked = chain(changes(good, bad), good, bad, rules(asks, ("app[more]",)))
    assert [g.changes[0].name for g in asked.groups] == ["a", "b", "app"]


def test_conflicts_are_told() -> None:
    asks = {"app==1": ("lib>=2", "none"), "lib==1": ()}
    found = conflicts(pins("app==1 lib==1"), rules(asks))
    assert found == {"app 1 needs lib>=2, here is 1", "app 1 needs none, which is not here"}
    assert not conflicts(pins("app==1 lib==2 none==1"), rules(asks))


def test_what_is_left_out_on_purpose_is_not_missed() -> None:
    asks = {"app==1": ("nvidia-cublas>=12", "lib")}
    told = Rules(asks, ENVIRONMENT, left_out=("nvidia-",))
    assert conflicts(pins("app==1"), told) == {"app 1 needs lib, which is not here"}
    assert len(conflicts(pins("app==1"), rules(asks))) == 2


NAMES = "abcdef"
Asks = dict[str, tuple[str, ...]]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[PinSet, PinSet, Asks]:
    """Two sets that fit, of versions 1 and 2, and what each version asks for."""
    specs = st.sampled_from([">=1", ">=2", "<2", "==1", "==2"])
    asks: Asks = {}
    for name in NAMES:
        for version in "12":
            others = draw(st.lists(st.tuples(st.sampled_from(NAMES), specs), max_size=2))
            kept = [
                f"{other}{spec}"
                for other, spec in others
                if other != name and Requirement(f"{other}{spec}").specifier.contains(version)
            ]
            asks[f"{name}=={version}"] = tuple(kept)
    return pins(" ".join(f"{n}==1" for n in NAMES)), pins(" ".join(f"{n}==2" for n in NAMES)), asks


@settings(deadline=None)
@given(worlds(), st.data())
def test_the_chain_knows_exactly_which_mixtures_fit(
    world: tuple[PinSet, PinSet, Asks], data: st.DataObject
) -> None:
    good, bad, asks = world
    links = chain(changes(good, bad), good, bad, rules(asks))
    chosen = data.draw(st.sets(st.integers(0, len(links.groups) - 1)))
    mixed = mixture(good, [c for i in chosen for c in links.groups[i].changes])
    closed = all(links.needs[i] <= chosen for i in chosen)
    assert closed == (not conflicts(mixed, rules(asks)))
    for i in range(len(links.groups)):
        assert max(links.needs[i]) == i  # what is needed comes before


def change(before: str, after: str, name: str = "x") -> Change:
    return Change(
        name=name,
        before=Pin(name=name, version=before) if before else None,
        after=Pin(name=name, version=after) if after else None,
    )


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("1.26.4", "2.0.0", "x<2"),
        ("4.24.0", "4.25.1", "x<4.25.1"),
        ("1.0", "2.0.0rc1", "x<=1.0"),
        ("2.0.0rc1", "2.0.0", "x<=2rc1"),
        ("2.0", "1.9", "x>1.9"),
        ("1.7.post1", "1.7", "x>=1.7.post1"),
        ("1.0", "1.0.post1", "x<1.post1"),
        ("1.0+cpu", "1.0+cu12", "x==1.0+cpu"),
        ("1.0+cpu", "1.1+cu12", "x<1.1"),
        ("no version", "2", "x==no version"),
        ("3", "", "x==3"),
    ],
)
def test_the_line_is_short_and_keeps_out_what_it_should(before: str, after: str, line: str) -> None:
    nothing = PinSet(())
    (found,) = constraints(change(before, after), nothing, nothing, rules())
    try:
        told = Requirement(found).specifier
    except ValueError:
        assert found == line
        return
    assert told == Requirement(line).specifier
    assert told.contains(before, prereleases=True)
    assert not after or not told.contains(after, prereleases=True)


def test_a_package_that_came_along_is_kept_out_where_it_came_from() -> None:
    good, bad = pins("app==1 other==1"), pins("app==2 new==1 other==1")
    asks = {"app==2": ("new",), "other==1": ()}
    assert constraints(change("", "1", "new"), good, bad, rules(asks)) == ("app<2",)
    assert constraints(change("", "1", "new"), good, bad, rules({})) == ()


def test_the_same_version_in_another_file_is_pinned_by_hash() -> None:
    before, after = (Pin(name="x", version="1", hashes=(sha * 64,)) for sha in "ab")
    told = Change(name="x", before=before, after=after)
    assert constraints(told, PinSet(()), PinSet(()), rules()) == (f"x==1 --hash=sha256:{'a' * 64}",)


@settings(deadline=None)
@given(st.text(alphabet="0123456789.", min_size=1, max_size=8), st.text("0123456789.", max_size=8))
def test_no_version_breaks_the_line(before: str, after: str) -> None:
    constraints(change(before, after or "1"), PinSet(()), PinSet(()), rules())


def test_pins_survive_being_written_down() -> None:
    some = PinSet.of([Pin(name="b", version="1", hashes=("a" * 64,), source=True, file="b-1.tar.gz")])
    assert pins_from_plain(pins_to_plain(some)) == some
    with pytest.raises((ValueError, TypeError)):
        pins_from_plain([["a", "1"]])


def test_another_python_has_its_own_markers() -> None:
    assert environment_of("3.8")["python_full_version"] == "3.8.0"
    here = environment_of("3.8")["sys_platform"]
    assert here == "linux"
