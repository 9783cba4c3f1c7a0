"""The stages of an environment, beside those of its row: locked on it, rendered, built on its image."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv import digest
from tfenv.buildx import BuildError
from tfenv.errors import TfenvError, UsageError
from tfenv.files import LOCK_NAME, write_all
from tfenv.inputs import Inputs

from . import layout, lockfile
from .inputs import TeamInputs, on, row_of
from .joined import whole
from .locking import differences, make_lock, packages_of
from .model import RowPin, TeamLock
from .render import render, template_version
from .resolvers import Resolvers, host_resolvers

if TYPE_CHECKING:
    from tfenv.build import Built, Host
    from tfenv.lock import Upgrade
    from tfenv.model import Environment
    from tfenv.workspace import Workspace


def team_lock(workspace: Workspace, cell: Environment) -> TeamLock | None:
    """The environment's own lock, None where there is none."""
    return lockfile.read(lockfile.lock_file(workspace.images, cell.name))


def pin(workspace: Workspace, cell: Environment) -> RowPin:
    """The row's image as the row's committed lock gives it now."""
    from tfenv.lockfile import lock_hash

    row = workspace.lock(cell.start)
    inputs = Inputs(cell.start, row, row.complete, workspace.rendered(cell.start, row)).hash
    recorded = digest.read(workspace.folder(cell.start))
    known = recorded is not None and recorded.inputs == inputs
    return RowPin(
        cell=cell.start.name,
        lock=lock_hash(row),
        inputs=inputs,
        packages=packages_of(row),
        manifest=recorded.manifest if recorded is not None and known else "",
    )


def relock(
    workspace: Workspace,
    cell: Environment,
    *,
    upgrade: Set[Upgrade] = frozenset(),
    packages: Sequence[str] = (),
    resolvers: Resolvers,
) -> tuple[TeamLock | None, TeamLock]:
    """The environment's committed lock, and what it has to be."""
    previous = team_lock(workspace, cell)
    made = make_lock(
        cell,
        workspace.lock(cell.start),
        pin(workspace, cell),
        previous,
        upgrade=upgrade,
        packages=packages,
        template=template_version(),
        resolvers=resolvers,
    )
    return previous, made


def state_of(workspace: Workspace, cell: Environment) -> str:
    """An environment's state in words, for people."""
    row = workspace.find_lock(cell.start)
    lock = team_lock(workspace, cell)
    if row is None or lock is None:
        return f"not locked (type: tfenv up {cell.name})"
    if differences(cell, cell.start.name, packages_of(row), lock):
        return f"lock out of date (type: tfenv lock {cell.name} --upgrade all)"
    return f"locked, on {cell.start.name}"


def write_lock(workspace: Workspace, cell: Environment, lock: TeamLock) -> None:
    """Write lock.json and the list of all wheels, both or none."""
    from tfenv.lockfile import REQUIREMENTS_NAME, requirements_lock

    listed = requirements_lock(whole(cell, workspace.lock(cell.start), lock))
    write_all(workspace.folder(cell), {REQUIREMENTS_NAME: listed, LOCK_NAME: lockfile.dump(lock)})


def require_current(workspace: Workspace, cell: Environment) -> None:
    """Refuse a lock that is not of what matrix, row and templates ask for now.

    Raises:
        UsageError: says what to type.
    """

    def never(*_: object) -> Any:
        raise AssertionError("nothing is resolved without an upgrade")

    previous, made = relock(
        workspace, cell, resolvers=Resolvers(wheels=never, debian=never, uv=never, now=never)
    )
    if previous != made:
        raise UsageError(
            f"the lock of {cell.name} does not follow matrix.yaml, its row and the templates",
            remedy=f"type: tfenv lock {cell.name}   (keeps every pin), then: tfenv render",
        )


def prepare(workspace: Workspace, cell: Environment, host: Host) -> None:
    """Lock and render the environment where that was not done yet; its row has been."""
    if team_lock(workspace, cell) is None:
        host.console.note(f"{cell.name}: no lock yet, resolving")
        _, lock = relock(workspace, cell, resolvers=host_resolvers(host.env))
        write_lock(workspace, cell, lock)
    if not (workspace.folder(cell) / "Dockerfile").exists():
        write_all(workspace.folder(cell), workspace.rendered(cell))


def committed(workspace: Workspace, cell: Environment, below: Inputs) -> TeamInputs:
    """What the committed locks give, proved to be what is committed.

    Args:
        below: the same of the row.

    Raises:
        UsageError: the lock is not of what is asked for now. DriftError: the files are not what the locks
            give. TfenvError: the lock was removed meanwhile.
    """
    from tfenv.render import drift, raise_drift

    if team_lock(workspace, cell) is not None:
        require_current(workspace, cell)
    raise_drift({cell.name: drift(workspace.folder(cell), workspace.rendered(cell))})
    made = uncommitted(workspace, cell)
    if made is None:  # removed meanwhile
        raise TfenvError(f"the lock of {cell.name} is gone", remedy=f"type: tfenv lock {cell.name}")
    return replace(made, below=below)


def uncommitted(workspace: Workspace, cell: Environment) -> TeamInputs | None:
    """What the locks give, whether or not that is what is committed; None where one is missing."""
    from tfenv.render import render as render_row

    team, row = team_lock(workspace, cell), workspace.find_lock(cell.start)
    if team is None or row is None:
        return None
    lock = whole(cell, row, team)
    return TeamInputs(
        cell=cell,
        lock=lock,
        locked=lock.complete,
        files=render(cell, row, team, lock),
        team=team,
        row=row,
        below=Inputs(cell.start, row, row.complete, render_row(cell.start, row)),
    )


def todays(inputs: TeamInputs, host: Host) -> TeamInputs:
    """The same with the team's Debian packages of today; the row's own stay as they are locked."""
    cell, row = inputs.cell, inputs.row
    if not cell.apt:
        return inputs
    found, at = host_resolvers(host.env).debian(row.suite, row.debian, cell.apt)
    debian = tuple(sorted(found, key=lambda package: package.name))
    team = replace(inputs.team, debian=debian, debian_locked_at=at)
    lock = whole(cell, row, team)
    made = render(cell, row, team, lock, locked=False)
    return replace(inputs, team=team, lock=lock, locked=False, files=made)


def build_on_row(inputs: TeamInputs, host: Host, *, no_cache: bool, archive_only: bool) -> Built:
    """The archive of an environment; its row's image is built first where it never was."""
    from tfenv import build

    if not no_cache and (found := build.find(inputs, host.store)):
        return found
    row = row_of(inputs, host)
    expected = inputs.team.row.manifest
    if expected and row.digest.manifest != expected:
        host.console.warn(
            f"{inputs.below.cell.name} is {row.digest.manifest} here, recorded is {expected}: "
            "another builder's compressor; the content is that of the same inputs"
        )

    def attempt(layers: bool) -> Built:
        # The lock keeps `tfenv gc`, and the build of another environment, off the row's layout.
        with host.store.lock(), layout.unpacked(row.archive, host.store, layers=layers) as context:
            placed = on(inputs, row, context)
            return build.build(placed, host, no_cache=no_cache, archive_only=archive_only)

    if not _in_engine(row, host):
        return attempt(layers=True)
    try:
        return attempt(layers=False)
    except BuildError as error:
        if error.step is not None or "not found" not in error.message:
            raise
        host.console.warn(
            f"{error.message}\nthe engine has lost a layer of the row's: once more, with all of them"
        )
        return attempt(layers=True)


def stage_for_hand(inputs: TeamInputs, host: Host, root: Path) -> list[str]:
    """Stage a build in the new folder ``root``, the row's image in it; the command line that builds it."""
    from tfenv import build, oci

    row = row_of(inputs, host)
    folder = root.absolute() / "row"
    argv = build.stage_for_hand(on(inputs, row, f"oci-layout://{folder}@{row.digest.manifest}"), host, root)
    layout.write(row.archive, oci.describe(row.archive), folder, layers=not _in_engine(row, host))
    return argv


def _in_engine(row: Built, host: Host) -> bool:
    from tfenv.container import connect

    with connect(host.env) as containers:
        return containers.inspect(row.digest.manifest) is not None
