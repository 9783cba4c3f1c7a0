"""From a matrix to an image in the engine: what is committed, what it gives, and which names mean it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfenv import build, digest, images, render
from tfenv.errors import IntegrityError
from tfenv.inputs import Inputs
from tfenv.model import Environment

from .locks import keep_lock

if TYPE_CHECKING:
    from tfenv.build import Built, Host
    from tfenv.images import Image
    from tfenv.model import Cell
    from tfenv.workspace import Workspace


@dataclass(frozen=True)
class Made:
    """A built cell in the engine, not tagged yet, and how it relates to the recorded digest."""

    built: Built
    image: Image
    likeness: digest.Likeness


def committed(workspace: Workspace, cell: Cell) -> Inputs:
    """What the committed lock gives, proved to be what is committed.

    Raises:
        UsageError: the lock is not of what the matrix asks for now.
        DriftError: the files in images/CELL are not what matrix and lock give.
    """
    from tfenv.lock import require_current

    if isinstance(cell, Environment):
        from tfenv.team import flow

        return flow.committed(workspace, cell, committed(workspace, cell.start))
    lock = workspace.lock(cell)
    require_current(cell, lock, render.template_version(cell.base.kind))
    files = workspace.rendered(cell, lock)
    render.raise_drift({cell.name: render.drift(workspace.folder(cell), files)})
    return Inputs(cell, lock, lock.complete, files)


def prepare(workspace: Workspace, cell: Cell, host: Host) -> Inputs:
    """Lock and render the cell where that was not done yet; what is committed is not touched.

    Raises:
        DriftError: the committed files do not belong together.
    """
    from tfenv.files import write_all
    from tfenv.lock import host_resolvers, make_lock, write_lock

    if isinstance(cell, Environment):
        from tfenv.team import flow

        prepare(workspace, cell.start, host)
        flow.prepare(workspace, cell, host)
        return committed(workspace, cell)
    if not workspace.is_locked(cell):
        host.console.note(f"{cell.name}: no lock yet, resolving")
        version, resolvers = render.template_version(cell.base.kind), host_resolvers(host.env)
        lock = make_lock(cell, None, set(), template_version=version, resolvers=resolvers)
        write_lock(lock, workspace.images)
    if not (workspace.folder(cell) / "Dockerfile").exists():
        write_all(workspace.folder(cell), workspace.rendered(cell))
    return committed(workspace, cell)


def make(
    workspace: Workspace, inputs: Inputs, host: Host, *, no_cache: bool = False, accept: bool = False
) -> Made:
    """Build, hold against the recorded digest, and have the engine keep the image.

    Args:
        accept: take another content than the recorded one, to record it.
    """
    cell = inputs.cell
    recorded = digest.read(workspace.folder(cell))
    built = _build(inputs, host, no_cache=no_cache)
    likeness = digest.compare(built.digest, recorded)
    if not accept and (warning := digest.require_likeness(built.digest, recorded, cell.name)):
        host.console.warn(warning)
    if images.settle(built, host.env):
        host.console.note(f"{cell.name}: loaded into the engine")
    keep_lock(inputs, host)
    made = images.Image(inputs.building, built.digest.manifest, cell.name, inputs.lock_hash)
    return Made(built, made, likeness)


def make_twice(inputs: Inputs, host: Host) -> tuple[Built, Built]:
    """Two builds without any cache, for comparing.

    Raises:
        IntegrityError: their digests differ; says in which layers and files.
    """
    from tfenv.compare import explain

    first = _build(inputs, host, no_cache=True, archive_only=True)
    second = _build(inputs, host, no_cache=True, archive_only=True)
    if first.digest.manifest != second.digest.manifest:
        raise IntegrityError(
            f"{inputs.cell.name} is not reproducible here: {first.digest.manifest} and then "
            f"{second.digest.manifest}\n" + explain(first.archive, second.archive),
            remedy="both archives are in the store; report the files above",
        )
    return first, second


def _build(inputs: Inputs, host: Host, *, no_cache: bool, archive_only: bool = False) -> Built:
    from tfenv.team.inputs import TeamInputs

    if isinstance(inputs, TeamInputs):
        from tfenv.team.flow import build_on_row

        return build_on_row(inputs, host, no_cache=no_cache, archive_only=archive_only)
    return build.build(inputs, host, no_cache=no_cache, archive_only=archive_only)


def tag(workspace: Workspace, made: Made, host: Host) -> tuple[str, ...]:
    """Move the cell's tags, but those that are held back, to what was made; return them."""
    return tag_image(workspace, made.built.inputs, made.image, host, why="tfenv build")


def tag_image(
    workspace: Workspace, inputs: Inputs, image: Image, host: Host, *, why: str, verdict: str = ""
) -> tuple[str, ...]:
    """Move the cell's tags, but those that are held back, to an image of ``inputs``; return them.

    Args:
        why: the command; verdict: of the image, where it is known. Both are written down.
    """
    from tfenv.history.moving import move

    tags = workspace.tags(inputs.cell, ending=inputs.ending)
    root, env = host.store.root, host.env
    moved = move(image, tags, env, root, why=why, verdict=verdict, passing=inputs.building)
    if moved.any:
        host.console.note(f"{inputs.cell.name}: tags moved to {image.id}")
    for said in moved.sentences:
        host.console.warn(said)
    return moved.tags


def record(workspace: Workspace, cell: Cell, built: Built) -> None:
    """Write the digest that builds of these inputs have to give."""
    from tfenv.files import write_all

    write_all(workspace.folder(cell), {digest.FILE_NAME: digest.dump(built.digest)})
