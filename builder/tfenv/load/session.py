"""One run for a cell: in a container, in an unpacked image, or from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfenv import build
from tfenv.container import Spec
from tfenv.errors import TfenvError
from tfenv.given_gpus import given, there
from tfenv.meant import Meant
from tfenv.recorded import require_own
from tfenv.rootfs_run import Rootfs
from tfenv.runline import choose_gpus, gpu_here
from tfenv.unpacked import read_unpacked
from tfenv.verify import Start
from tfenv.verify_elsewhere import image_digest, smi
from tfenv.workspace import Workspace

from .bare import BARE, Bare
from .from_file import collected
from .pack import pack
from .running import Collected, Event, run_load
from .whose import require_of


class NoGpuHereError(TfenvError):
    """There is nothing to put load on."""

    exit_code = 3


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where to run.

    Args:
        gpus: as of ``--gpus``. rootfs: an unpacked image instead of the engine's.
        python: one of this host, without a container.
        lines: what the program printed elsewhere, instead of running it. digest: of the image there;
            empty for the one that is recorded. bare: they were printed without a container.
        allow_cpu: for development.
    """

    gpus: str = "auto"
    rootfs: Path | None = None
    python: Path | None = None
    lines: Path | None = None
    digest: str = ""
    bare: bool = False
    allow_cpu: bool = False


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What it said, in which image (digest with ``sha256:``), and by what it was run."""

    collected: Collected
    digest: str
    docker: str


def run_in(
    workspace: Workspace,
    named: Meant,
    host: build.Host,
    place: Place,
    arguments: Sequence[str],
    *,
    limit: float,
    on_event: Callable[[Event], None],
) -> Ran:
    """Run ``load.pyz ARGUMENTS`` for the cell, in the image that its name means here.

    Args:
        limit: seconds.

    Raises:
        NoGpuHereError: this host has no GPU. NotReadyError: it has not those that are asked for.
        UsageError: there is no such image here, or nothing of this cell in the lines.
        IntegrityError: what ran was not the cell's TensorFlow.
    """
    named.tell(host.console.note, committed=bool(place.lines or place.rootfs or place.python))
    if place.lines is not None:
        known = image_digest(workspace, named.cell, place.digest)
        done = collected(place.lines, arguments[0], named.cell, tell=host.console.warn)
        return Ran(collected=done, digest=known, docker=BARE if place.bare else "rootfs")
    options = [*arguments, *(["--allow-cpu"] if place.allow_cpu else [])]
    with _opened(workspace, named, host, place) as where:
        done = run_load(where.start, where.spec, pack(), options, limit=limit, on_event=on_event)
    require_of(named.cell, done.events)
    return Ran(collected=done, digest=where.digest, docker=where.docker)


@dataclass(frozen=True, kw_only=True)
class _Where:
    """How a container is started there, for which image, and by what (as of ``Ran``)."""

    start: Start
    spec: Spec
    digest: str
    docker: str


@contextmanager
def _opened(workspace: Workspace, named: Meant, host: build.Host, place: Place) -> Iterator[_Where]:
    wanted, _ = choose_gpus(place.gpus, gpu_here(lambda argv: smi(argv).returncode == 0))
    if wanted is None and not place.allow_cpu:
        raise NoGpuHereError("not run: no GPU", remedy="run it on a host with an NVIDIA GPU")
    if place.rootfs is not None:
        image = read_unpacked(place.rootfs)
        require_own(workspace, named.cell, image.digest, str(place.rootfs))
        spec = Spec(image="", gpus=there(given(wanted), smi))
        yield _Where(start=Rootfs(image).container, spec=spec, digest=image.digest, docker="rootfs")
        return
    if place.python is not None:
        digest = image_digest(workspace, named.cell, place.digest)  # before a run of an hour, not after it
        spec = Spec(image="", gpus=there(given(wanted), smi))
        yield _Where(start=Bare(place.python).container, spec=spec, digest=digest, docker=BARE)
        return
    from tfenv.container import connect

    engine = build.ready_engine(host.env)
    found = named.image(host.env)
    named.lock(workspace, found, host)  # it is an image of this cell
    with connect(host.env) as containers:
        spec = Spec(image=found.id, gpus=given(wanted))
        docker = engine.server_version or ""
        yield _Where(start=containers.container, spec=spec, digest=found.id, docker=docker)
