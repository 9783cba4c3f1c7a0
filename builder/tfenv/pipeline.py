"""The stages of one cell joined together: what `build`, `verify` and `up` each do a part of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import build, digest, images, render
from tfenv.engine import run_command
from tfenv.errors import IntegrityError, UsageError
from tfenv.inputs import Inputs, unlocked
from tfenv.lockfile import dump_lock, load_lock
from tfenv.model import Environment
from tfenv.runline import choose_gpus, gpu_here

if TYPE_CHECKING:
    from tfenv.build import Built, Host
    from tfenv.images import Image
    from tfenv.model import Cell, Lock
    from tfenv.report import Report
    from tfenv.verify import Suite
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
    if not inputs.locked:
        _keep_lock(inputs, host)
    made = images.Image(inputs.building, built.digest.manifest, cell.name, inputs.lock_hash)
    return Made(built, made, likeness)


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


def todays(inputs: Inputs, host: Host) -> Inputs:
    """The same with the Debian packages of today, where the locked ones are no longer to be had."""
    from tfenv.lock import host_resolvers, with_todays_debian
    from tfenv.team.inputs import TeamInputs

    cell = inputs.cell
    if isinstance(inputs, TeamInputs):
        from tfenv.team import flow

        return flow.todays(inputs, host)
    return unlocked(
        cell, with_todays_debian(inputs.lock, host_resolvers(host.env), cell.base.packages_for(cell.python))
    )


def on_stand_in(inputs: Inputs, host: Host) -> Inputs:
    """The same on a stand-in for its base image, for where that cannot be pulled.

    Raises:
        UsageError: the cell starts from no image, or no stand-in can be made for it.
    """
    from tfenv import standin
    from tfenv.index import discover

    cell, lock = inputs.cell, inputs.lock
    if isinstance(cell, Environment):
        raise UsageError(
            f"{cell.name} extends {cell.start.name}, and is not built on a stand-in for its base",
            remedy=f"type: tfenv up {cell.start.name} --stand-in",
        )
    if not lock.base_image or lock.interpreter is None:
        raise UsageError(
            f"{cell.name} starts from no image, so nothing can stand in for it",
            remedy=f"type: tfenv up {cell.name}",
        )
    with host.console.build_view() as on_event:
        made = standin.make_standin(
            lock.base_image, store=host.store, index=discover(host.env), env=host.env, on_event=on_event
        )
    if made.python != cell.python:
        raise UsageError(
            f"the stand-in for {lock.base_image} has Python {made.python}, the cell {cell.python}",
            remedy=f"name the cell with py{made.python} on {cell.base.name}",
        )
    python = standin.interpreter(made, host.store)
    lock = replace(lock, interpreter=python)
    return replace(
        unlocked(cell, lock),
        stand_in=made.image,
        contexts=made.contexts(lock.base_image, lock.base_digest),
    )


def recorded_image(workspace: Workspace, inputs: Inputs, host: Host) -> Image | None:
    """The image of these very inputs that the engine still has, though it could not be built any more."""
    recorded = digest.read(workspace.folder(inputs.cell))
    if recorded is None or recorded.inputs != inputs.hash:
        return None
    try:
        return images.find((recorded.manifest,), host.env)
    except UsageError:
        return None


def _locks(host: Host) -> Path:
    return host.store.root / "locks"


def _keep_lock(inputs: Inputs, host: Host) -> None:
    """Keep a lock that is committed nowhere, so that its image can be verified and built again."""
    from tfenv.files import write_all

    write_all(_locks(host), {f"{inputs.lock_hash}.json": dump_lock(inputs.lock)})


def lock_of(workspace: Workspace, cell: Cell, image: Image, host: Host) -> Lock:
    """The lock that an image's label names: the committed one, or one kept by `up`.

    Raises:
        UsageError: it is neither.
    """
    from tfenv.lockfile import lock_hash

    lock = workspace.find_lock(cell)
    if lock is not None and lock_hash(lock) == image.lock:
        return lock
    kept = _locks(host) / f"{image.lock}.json"
    if image.cell == cell.name and image.lock and kept.is_file():
        return load_lock(kept.read_text("utf-8"), where=str(kept))
    raise UsageError(
        f"{image.name} was not built from the lock in images/{cell.name}",
        remedy=f"type: tfenv build {cell.name}",
    )


def declared(cell: Cell, lock: Lock, image: str) -> dict[str, object]:
    """What the verification suite is told about the image."""
    from tfenv import facts, libraries, verify

    row = cell.row
    compiled = facts.compiled(row.tensorflow)
    opened = libraries.opened(compiled, cuda=cell.cuda_set.cuda, cudnn=cell.cuda_set.cudnn)
    told = verify.declared_for(
        cell, lock, compiled, opened, image=image, environment=render.image_environment(lock)
    )
    return dict(told)


def check(
    cell: Cell,
    lock: Lock,
    image: Image,
    host: Host,
    *,
    suite: Suite = "full",
    gpus: str = "auto",
    reports: Path | None = None,
    stand_in: str = "",
    expect_gpus: int | None = None,
) -> tuple[Report, Path]:
    """Run the suite in exactly this image, by its digest; return the report and its folder.

    Args:
        expect_gpus: how many GPUs the image shall see: it fails with another number. None for any.
    """
    from tfenv import report, verify

    engine = build.ready_engine(host.env)
    wanted, note = choose_gpus(gpus, gpu_here(lambda argv: run_command(argv).returncode == 0))
    if note:
        host.console.note("no NVIDIA GPU here: the checks that need one are not run")

    def tell(done: report.Check) -> None:
        host.console.note(f"  {done.status:<8} {done.name}  {report.summary(done)}")

    with verify.on_engine(host.env, suite) as (_, runner):
        made = verify.verify_image(
            image.id,
            declared(cell, lock, image.id),
            digest=image.id,
            host=verify.host_facts(run_command, engine, gpus=verify.given(wanted)),
            runner=runner,
            suite=suite,
            gpus=verify.given(wanted),
            more=verify.expecting(expect_gpus),
            endpoint=engine.endpoint,
            on_check=tell,
            stand_in=stand_in,
        )
    made = replace(made, image=cell.name)
    return made, report.write(made, reports or host.store.root / "reports")


def record(workspace: Workspace, cell: Cell, built: Built) -> None:
    """Write the digest that builds of these inputs have to give."""
    from tfenv.files import write_all

    write_all(workspace.folder(cell), {digest.FILE_NAME: digest.dump(built.digest)})
