"""Is there a newer TensorFlow than the matrix has?"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from tfenv.outdated.model import Finding, Subject
from tfenv.outdated.probes import World
from tfenv.outdated.project import Project, final_only
from tfenv.versions import minor, order
from tfenv.wheels import DEFAULT_PLATFORM

TENSORFLOW = "tensorflow"


def newer_patch(subject: Subject, world: World) -> Iterator[Finding]:
    """A later release of the row's minor release that this cell could have, and that no row has."""
    project = world.answers.projects.get(TENSORFLOW)
    mine = order(subject.cell.row.tensorflow)

    def wanted(version: Version) -> bool:
        same = minor(str(version)) == minor(str(mine))
        return same and version > mine and (mine.is_prerelease or final_only(version))

    platform = subject.lock.wheel_platform if subject.lock else DEFAULT_PLATFORM
    found = project.newest(subject.cell.python, platform, wanted) if project else None
    if found is not None and found not in _rows(world):
        yield Finding(
            cell=subject.cell.name,
            kind="patch",
            severity="act",
            message=f"TensorFlow {found} is out, the row has {mine}",
            remedy=_brought(found, world) or f"add a row for {found} to matrix.yaml, then: tfenv lock --all",
        )


def newer_minor(world: World) -> Iterator[Finding]:
    """A minor release beyond those of the matrix: a release is to be added, a candidate is news.

    A team has the rows that it wants, so to a team both are news.
    """
    project = world.answers.projects.get(TENSORFLOW)
    rows = _rows(world)
    if project is None or not rows:
        return
    beyond = [version for version, _ in project.wheels if _minor(version) > max(map(_minor, rows))]
    finals = [version for version in beyond if final_only(version)]
    if newest := (finals or beyond)[:1]:
        team = world.offered is not None
        missing = (
            "nothing: this tfenv has no row of it"
            if team
            else ("read its facts, `tfenv facts audit`, and add a row to matrix.yaml")
        )
        yield Finding(
            cell="",
            kind="minor",
            severity="act" if finals and not team else "info",
            message=f"TensorFlow {newest[0]} is out, a minor release that no row has",
            remedy=_brought(newest[0], world) or missing,
        )


def _brought(release: Version, world: World) -> str:
    """How a team gets the row of a release from tfenv's own matrix; empty where that has none."""
    if not any(order(one) == release for one in world.offered or ()):
        return ""
    return f"where you want it, tfenv brings its row: tfenv new NAME --from {release} -r FILE"


def vanished_release(subject: Subject, world: World) -> Iterator[Finding]:
    """A row whose release has no wheel any more, or only withdrawn ones."""
    project = world.answers.projects.get(TENSORFLOW)
    if project is None or _has(project, subject.cell.row.tensorflow):
        return
    yield Finding(
        cell=subject.cell.name,
        kind="release gone",
        severity="urgent",
        message=f"the package index offers no wheel of TensorFlow {subject.cell.row.tensorflow} any more",
        remedy="keep what the store holds (do not run tfenv gc), and take another release in matrix.yaml",
    )


def _has(project: Project, release: str) -> bool:
    return any(version == order(release) for version, _ in project.wheels)


def _rows(world: World) -> tuple[Version, ...]:
    return tuple(order(row.tensorflow) for row in world.matrix.rows)


def _minor(version: Version) -> tuple[int, ...]:
    return (*version.release, 0)[:2]
