"""What differs between two sets of pins, and which of it fits together without the rest.

A mixture of the two sets is refused where a package in it asks for what another one is not. Both ends
fit, so each refusal says: this change needs that one. So all mixtures that fit are known before any
is built, and the search proposes no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from graphlib import TopologicalSorter

from tfenv.bisect.model import Change, Pin, PinSet, Requires


@dataclass(frozen=True)
class Group:
    """Changes that are only to be had together (mostly one)."""

    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.changes))


@dataclass(frozen=True)
class Chain:
    """All changes in groups, ordered so that what one needs comes before it.

    Args:
        needs: for each group the positions of those that it cannot be without, itself among them.
    """

    groups: tuple[Group, ...]
    needs: tuple[frozenset[int], ...]


@dataclass(frozen=True)
class Rules:
    """What packages ask of each other.

    Args:
        requires: Requires-Dist by ``name==version``.
        environment: PEP 508's variables of the Python that is bisected.
        asked: what the user asked for; its extras count.
        left_out: beginnings of names that are not installed on purpose, so nobody misses them.
    """

    requires: Requires
    environment: Mapping[str, str]
    asked: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def extras(self) -> Mapping[str, Set[str]]:
        """The extras of each package that anybody asks for."""
        found: dict[str, set[str]] = {}
        for text in (*self.asked, *(line for lines in self.requires.values() for line in lines)):
            for name, extras in _extras_in(text):
                found.setdefault(name, set()).update(extras)
        return found

    def wants(self, pin: Pin, extras: Mapping[str, Set[str]]) -> Iterable[tuple[str, str]]:
        """(name, specifier) of each package that this one asks for, here."""
        for text in self.requires.get(pin.key, ()):
            wanted = _applies(text, self.environment, frozenset(extras.get(pin.name, ())))
            if wanted is not None and not wanted[0].startswith(self.left_out):
                yield wanted


def environment_of(python: str) -> Mapping[str, str]:
    """PEP 508's variables of that Python (``3.11``) on this machine."""
    from packaging.markers import default_environment

    own = {key: str(value) for key, value in default_environment().items()}
    if own["python_version"] == python:
        return own
    return {
        **own,
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_version": f"{python}.0",
    }


def changes(good: PinSet, bad: PinSet) -> tuple[Change, ...]:
    """What differs, by name."""
    found = []
    for name in sorted({*good.by_name, *bad.by_name}):
        before, after = good.by_name.get(name), bad.by_name.get(name)
        if before is None or after is None or not before.same(after):
            found.append(Change(name=name, before=before, after=after))
    return tuple(found)


def mixture(good: PinSet, made: Iterable[Change]) -> PinSet:
    """The good set with these changes."""
    pins = dict(good.by_name)
    for change in made:
        if change.after is None:
            pins.pop(change.name, None)
        else:
            pins[change.name] = change.after
    return PinSet.of(pins.values())


def conflicts(pins: PinSet, rules: Rules) -> frozenset[str]:
    """What does not fit in a set, one sentence each."""
    extras = rules.extras()
    found = set()
    for pin in pins.pins:
        for name, spec in rules.wants(pin, extras):
            there = pins.by_name.get(name)
            if not _meets(there, spec):
                has = f"here is {there.version}" if there else "which is not here"
                found.add(f"{pin.name} {pin.version} needs {name}{spec}, {has}")
    return frozenset(found)


def chain(differ: Sequence[Change], good: PinSet, bad: PinSet, rules: Rules) -> Chain:
    """The changes from ``good`` to ``bad`` in groups, in an order in which every beginning fits."""
    at = {change.name: position for position, change in enumerate(differ)}
    edges = _edges(at, good, bad, rules)
    reach = [_reachable(start, edges) for start in range(len(differ))]
    group_of: dict[int, int] = {}
    members: list[list[int]] = []
    for i in range(len(differ)):
        if i not in group_of:
            together = [j for j in sorted(reach[i]) if i in reach[j]]
            members.append(together)
            group_of.update(dict.fromkeys(together, len(members) - 1))
    above = [{group_of[j] for i in group for j in reach[i]} for group in members]
    order = list(TopologicalSorter({g: sorted(above[g] - {g}) for g in range(len(members))}).static_order())
    place = {group: position for position, group in enumerate(order)}
    return Chain(
        groups=tuple(Group(tuple(differ[i] for i in members[group])) for group in order),
        needs=tuple(frozenset(place[other] for other in above[group]) for group in order),
    )


def _edges(at: Mapping[str, int], good: PinSet, bad: PinSet, rules: Rules) -> Sequence[Set[int]]:
    """For each change those that it directly needs."""
    extras = rules.extras()
    edges: list[set[int]] = [set() for _ in at]
    for pin in bad.pins:
        for name, spec in rules.wants(pin, extras):
            fits = _meets(bad.by_name.get(name), spec)
            if pin.name in at and name in at and fits and not _meets(good.by_name.get(name), spec):
                edges[at[pin.name]].add(at[name])  # new X asks for new Y
    for pin in good.pins:
        for name, spec in rules.wants(pin, extras):
            fitted = _meets(good.by_name.get(name), spec)
            if pin.name in at and name in at and fitted and not _meets(bad.by_name.get(name), spec):
                edges[at[name]].add(at[pin.name])  # old X forbids new Y
    return edges


def _reachable(start: int, edges: Sequence[Set[int]]) -> frozenset[int]:
    seen, todo = {start}, [start]
    while todo:
        for following in edges[todo.pop()]:
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return frozenset(seen)


def _meets(pin: Pin | None, spec: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    if pin is None:
        return False
    try:
        return SpecifierSet(spec).contains(Version(pin.version), prereleases=True)
    except InvalidVersion:
        return True  # who knows: the test will tell


def _applies(text: str, environment: Mapping[str, str], extras: Set[str]) -> tuple[str, str] | None:
    from packaging.markers import UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        wanted = Requirement(text)
        if wanted.marker is not None:
            told = ({**environment, "extra": extra} for extra in ("", *sorted(extras)))
            if not any(wanted.marker.evaluate(one) for one in told):
                return None
    except (InvalidRequirement, UndefinedEnvironmentName):
        return None  # metadata of old packages is not always in order
    return _normalized(wanted.name), str(wanted.specifier)


def _extras_in(text: str) -> Iterable[tuple[str, Set[str]]]:
    match = re.match(r"\s*([A-Za-z0-9._-]+)\s*\[([^\]]*)\]", text)
    if match:
        yield _normalized(match[1]), {extra.strip() for extra in match[2].split(",") if extra.strip()}


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
