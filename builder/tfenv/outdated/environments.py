"""A team's environment: has its row moved on, and which of its own packages have newer versions?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tfenv.model import Environment, Wheel
from tfenv.outdated.model import Finding, Subject
from tfenv.outdated.probes import Refused, World
from tfenv.outdated.project import final_only


def behind(subject: Subject, _world: World) -> Iterator[Finding]:
    """The lock is no longer of what matrix.yaml and the row's lock say, so that it cannot be built."""
    if subject.behind is not None:
        yield Finding(
            cell=subject.cell.name,
            kind="behind its row",
            severity="act",
            message=subject.behind.message,
            remedy=subject.behind.remedy,
            details=subject.behind.details,
        )


def newer_packages(subject: Subject, world: World) -> Iterator[Finding]:
    """Newer versions that the team's requirements allow, and apart from them those that are held back.

    What other packages need is in no lock: where the resolver was asked too, what it left is held back.
    """
    cell, lock = subject.cell, subject.lock
    if lock is None or not isinstance(cell, Environment):
        return
    asked, resolved = requirements(cell), world.answers.resolved.get(cell.name)
    allowed, held = [], []
    for wheel in lock.wheels:
        project = world.answers.projects.get(wheel.name)
        if project is None:
            continue
        wanted = asked.get(wheel.name, SpecifierSet())
        newest = project.newest(cell.python, lock.wheel_platform, final_only)
        fitting = project.newest(cell.python, lock.wheel_platform, partial(_wanted, wanted))
        if fitting is not None and fitting > Version(wheel.version) and not isinstance(resolved, tuple):
            allowed.append(f"{wheel.name} {wheel.version} -> {fitting}")
        elif newest is not None and newest > _today(wheel, resolved):
            why = f"asked for is {wanted}" if fitting is None or fitting < newest else "beside the others"
            held.append(f"{wheel.name} {wheel.version} -> {newest} ({why})")
    if allowed:
        yield Finding(
            cell=cell.name,
            kind="newer packages",
            severity="info",
            message=f"{_packages(allowed)} newer versions that its requirements allow",
            remedy=f"nothing, or: tfenv lock {cell.name} --upgrade-package PACKAGE; "
            f"which of them fit together and beside the row: tfenv outdated {cell.name} --resolve",
            details=tuple(allowed),
        )
    if held:
        yield Finding(
            cell=cell.name,
            kind="held back",
            severity="info",
            message=f"{_packages(held)} newer versions that are held back",
            remedy="nothing, unless you need one: then change the requirement in matrix.yaml and type: "
            f"tfenv lock {cell.name} --upgrade wheels",
            details=tuple(held),
        )


def resolves(subject: Subject, world: World) -> Iterator[Finding]:
    """What the team's requirements give today beside the row's packages, none of which can move."""
    cell, now = subject.cell, world.answers.resolved.get(subject.cell.name)
    if isinstance(now, Refused):
        yield Finding(
            cell=cell.name,
            kind="does not resolve",
            severity="act",
            message=f"it no longer resolves: {now.why}",
            remedy="the lock still builds; before you lock anew, change its requirements in matrix.yaml",
        )
    elif now is not None and subject.lock is not None and (changes := _changes(subject.lock.wheels, now)):
        yield Finding(
            cell=cell.name,
            kind="resolves differently",
            severity="info",
            message=f"beside the same row it would lock {len(changes)} of its packages otherwise today",
            remedy=f"nothing, or: tfenv lock {cell.name} --upgrade-package PACKAGE; for all of them write "
            f"a later exclude_newer into matrix.yaml, then: tfenv lock {cell.name} --upgrade wheels",
            details=tuple(changes),
        )


def requirements(cell: Environment) -> dict[str, SpecifierSet]:
    """The versions that the team asks for, by package."""
    found: dict[str, SpecifierSet] = {}
    for text in cell.asked:
        wanted = Requirement(text)
        name = canonicalize_name(wanted.name)
        found[name] = found.get(name, SpecifierSet()) & wanted.specifier
    return found


def _wanted(wanted: SpecifierSet, version: Version) -> bool:
    return wanted.contains(version) and (bool(wanted.prereleases) or final_only(version))


def _today(wheel: Wheel, resolved: tuple[Wheel, ...] | Refused | None) -> Version:
    """The version that would be locked today: the resolver's, where it was asked."""
    now = resolved if isinstance(resolved, tuple) else ()
    return max(Version(one.version) for one in (wheel, *now) if one.name == wheel.name)


def _changes(locked: tuple[Wheel, ...], now: tuple[Wheel, ...]) -> list[str]:
    before, after = ({wheel.name: wheel.version for wheel in wheels} for wheels in (locked, now))
    return [
        f"{name} {before.get(name, 'new')} -> {after.get(name, 'gone')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _packages(of: list[str]) -> str:
    return "one of its packages has" if len(of) == 1 else f"{len(of)} of its packages have"
