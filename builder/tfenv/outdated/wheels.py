"""Are the locked wheels still there, still the same, and not withdrawn? Which have newer versions?"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from tfenv.model import Environment, Lock, Wheel
from tfenv.outdated.model import Finding, Subject
from tfenv.outdated.probes import World
from tfenv.outdated.project import Project, final_only
from tfenv.outdated.releases import TENSORFLOW
from tfenv.simple_index import ProjectFile

_KEEP = "keep what the store holds (do not run tfenv gc); or: tfenv lock {cell} --upgrade wheels"


def locked_wheels(subject: Subject, world: World) -> Iterator[Finding]:
    """Each locked wheel that vanished, whose bytes are others now, or that its author withdrew."""
    for wheel in subject.lock.wheels if subject.lock else ():
        project = world.answers.projects.get(wheel.name)
        if project is None:
            continue
        files = project.by_filename.get(wheel.filename, ())
        same = [file for file in files if file.sha256 == wheel.sha256]
        if not same and any(file.sha256 for file in files):
            yield from _changed(subject, world, wheel, files)
        elif not files:
            yield from _vanished(subject, world, wheel)
        elif (reason := _yanked(same or list(files))) is not None:
            yield Finding(
                cell=subject.cell.name,
                kind="yanked",
                severity="act",
                message=f"{wheel.name} {wheel.version} was withdrawn by its author: "
                f"{reason or 'no reason given'}",
                remedy=_without(subject, wheel),
            )


def newer_packages(subject: Subject, world: World) -> Iterator[Finding]:
    """All packages but TensorFlow in one finding: they are held back on purpose, so it is news, no alarm."""
    lock = subject.lock
    if lock is None:
        return
    wheels = [wheel for wheel in lock.wheels if wheel.layer != "tool" and wheel.name != TENSORFLOW]
    newer = [
        f"{wheel.name} {wheel.version} -> {version}"
        for wheel in wheels
        if (version := _newer(subject, lock, wheel, world)) is not None
    ]
    if newer:
        yield Finding(
            cell=subject.cell.name,
            kind="newer packages",
            severity="info",
            # Without numbers, so that it is said once for all cells: the details have them.
            message="there are newer versions of packages that the row holds back on purpose",
            remedy="nothing, unless you need one: then change the row's requirements or exclude_newer",
            details=tuple(newer),
        )


def without_hashes(lock: Lock, projects: dict[str, Project]) -> tuple[Wheel, ...]:
    """The wheels of which an index tells the name only, so that nobody can say whether they are the same."""
    return tuple(
        wheel
        for wheel in lock.wheels
        if wheel.name in projects
        and (files := projects[wheel.name].by_filename.get(wheel.filename))
        and not any(file.sha256 for file in files)
    )


def _without(subject: Subject, wheel: Wheel) -> str:
    """How to get rid of a withdrawn wheel."""
    name = subject.cell.name
    if isinstance(subject.cell, Environment):
        return f"tfenv lock {name} --upgrade-package {wheel.name}, where its requirements allow another"
    return f"tfenv lock {name} --upgrade wheels, where the row does not pin it"


def _newer(subject: Subject, lock: Lock, wheel: Wheel, world: World) -> Version | None:
    project = world.answers.projects.get(wheel.name)
    locked = Version(wheel.version)
    newest = project and project.newest(subject.cell.python, lock.wheel_platform, final_only)
    return newest if newest and newest > locked else None


def _changed(
    subject: Subject, world: World, wheel: Wheel, files: tuple[ProjectFile, ...]
) -> Iterator[Finding]:
    if not world.answers.local(wheel):
        yield Finding(
            cell=subject.cell.name,
            kind="hash changed",
            severity="urgent",
            message=f"{wheel.filename} is another file today: the index says sha256 {files[0].sha256[:12]}, "
            f"locked is {wheel.sha256[:12]}",
            remedy="find out who replaced it before you trust it; " + _KEEP.format(cell=subject.cell.name),
        )


def _vanished(subject: Subject, world: World, wheel: Wheel) -> Iterator[Finding]:
    if not world.answers.local(wheel):
        yield Finding(
            cell=subject.cell.name,
            kind="vanished",
            severity="urgent",
            message=f"{wheel.filename} is gone from the package index",
            remedy=_KEEP.format(cell=subject.cell.name),
        )


def _yanked(files: list[ProjectFile]) -> str | None:
    """The reason, where every index that has the file calls it yanked."""
    reasons = [file.yanked for file in files]
    return None if None in reasons else reasons[0]
