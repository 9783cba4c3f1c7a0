"""The stages of one cell joined together: what `build`, `verify` and `up` each do a part of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import build, digest, render
from tfenv.engine import run_command
from tfenv.errors import IntegrityError
from tfenv.lock import host_resolvers, make_lock, with_todays_debian, write_lock
from tfenv.runline import choose_gpus, gpu_here

if TYPE_CHECKING:
    from tfenv.build import Built, Host
    from tfenv.model import Cell, Lock
    from tfenv.report import Report
    from tfenv.verify import Suite
    from tfenv.workspace import Workspace


@dataclass(frozen=True)
class Made:
    """A built and tagged cell, and how it relates to the digest recorded for its lock."""

    built: Built
    tags: tuple[str, ...]
    likeness: digest.Likeness


def require_rendered(workspace: Workspace, cell: Cell, lock: Lock) -> dict[str, str]:
    """What is built is what is committed: the files that the committed lock gives.

    Raises:
        DriftError: the files in images/CELL are not what matrix and lock give.
    """
    files = workspace.rendered(cell, lock)
    render.raise_drift({cell.name: render.drift(workspace.folder(cell), files)})
    return files


def build_cell(
    workspace: Workspace, cell: Cell, host: Host, *, lock: Lock | None = None, no_cache: bool = False
) -> Made:
    """Build a cell from its committed lock, load it, tag it.

    Args:
        lock: another lock than the committed one; the image is then marked so.
    """
    locked, files = lock is None, None
    if lock is None:
        lock = workspace.lock(cell)
        files = require_rendered(workspace, cell, lock)
    built = build.build(cell, lock, host, no_cache=no_cache, locked=locked, files=files)
    likeness = digest.compare(built.digest, digest.read(workspace.folder(cell)))
    if likeness == "different":
        host.console.warn(
            f"{cell.name}: this is not the digest that its digest.json records for this lock;\n"
            "another builder can be the cause: `tfenv build --check-reproducible` tells if it repeats itself"
        )
    tags = workspace.tags(cell)
    if build.load_and_tag(built, tags, host.env):
        host.console.note(f"{cell.name}: in the engine, tags moved")
    return Made(built, tags, likeness)


def build_twice(workspace: Workspace, cell: Cell, host: Host) -> tuple[Built, Built]:
    """Two builds of the committed lock without any cache, for comparing.

    Raises:
        IntegrityError: their digests differ; says in which layers and files.
    """
    from tfenv.compare import explain

    lock = workspace.lock(cell)
    require_rendered(workspace, cell, lock)
    first = build.build(cell, lock, host, no_cache=True, archive_only=True)
    second = build.build(cell, lock, host, no_cache=True, archive_only=True)
    if first.digest.manifest != second.digest.manifest:
        raise IntegrityError(
            f"{cell.name} is not reproducible here: {first.digest.manifest} and then "
            f"{second.digest.manifest}\n" + explain(first.archive, second.archive),
            remedy="both archives are in the store; report the files above",
        )
    return first, second


def prepare(workspace: Workspace, cell: Cell, host: Host) -> Lock:
    """Lock and render the cell where that was not done yet; what is committed is not touched.

    Raises:
        DriftError: the committed files do not belong together.
    """
    lock = workspace.find_lock(cell)
    if lock is None:
        host.console.note(f"{cell.name}: no lock yet, resolving")
        lock = make_lock(
            cell,
            None,
            set(),
            template_version=render.template_version(),
            resolvers=host_resolvers(host.env),
        )
        write_lock(lock, workspace.images)
    render.require_current_template(cell, lock)
    folder = workspace.folder(cell)
    if not (folder / "Dockerfile").exists():
        from tfenv.files import write_all

        write_all(folder, render.render(cell, lock))
    require_rendered(workspace, cell, lock)
    return lock


def todays_lock(cell: Cell, lock: Lock, host: Host) -> Lock:
    """The lock with the Debian packages of today, where the locked ones are no longer to be had."""
    return with_todays_debian(lock, host_resolvers(host.env), cell.base.packages)


def declared(cell: Cell, lock: Lock, image: str) -> dict[str, object]:
    """What the verification suite is told about the image."""
    from tfenv import facts, verify

    row = cell.row
    compiled = facts.compiled(row.tensorflow)
    libraries = facts.libraries(row.cuda_set.cuda.split(".")[0], row.cuda_set.cudnn.split(".")[0])
    told = verify.declared_for(
        cell, lock, compiled, libraries, image=image, environment=render.image_environment(cell)
    )
    return dict(told)


def verify_cell(
    workspace: Workspace,
    cell: Cell,
    host: Host,
    *,
    lock: Lock | None = None,
    suite: Suite = "full",
    gpus: str = "auto",
    reports: Path | None = None,
) -> tuple[Report, Path]:
    """Verify the cell's image as the engine has it; return the report and its folder."""
    from tfenv import report, verify
    from tfenv.container import connect

    lock = lock or workspace.lock(cell)
    engine = build.ready_engine(host.env)
    wanted, note = choose_gpus(gpus, gpu_here(lambda argv: run_command(argv).returncode == 0))
    if note:
        host.console.note("no NVIDIA GPU here: the checks that need one are not run")
    ref = workspace.tags(cell)[0]
    with connect(host.env) as containers:
        image = containers.inspect(ref)
        made = verify.verify_image(
            ref,
            declared(cell, lock, image or ""),
            digest=image,
            host=verify.host_facts(run_command, engine, gpus=wanted is not None),
            start=containers.container,
            suite=suite,
            gpus=wanted is not None,
            endpoint=engine.endpoint,
            on_check=lambda check: host.console.note(
                f"  {check.status:<8} {check.name}  {report.summary(check)}"
            ),
        )
    folder = report.write(made, reports or host.store.root / "reports")
    return made, folder


def record(workspace: Workspace, cell: Cell, built: Built) -> Path:
    """Write the digest that builds of this lock have to give."""
    from tfenv.files import write_all

    write_all(workspace.folder(cell), {digest.FILE_NAME: digest.dump(built.digest)})
    return workspace.folder(cell) / digest.FILE_NAME
