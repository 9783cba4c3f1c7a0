"""Verdicts on a cell's image without an engine: unpacked on this host, or by lines printed elsewhere."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tfenv import build, pipeline, report, verify
from tfenv import digest as digests
from tfenv.engine import Completed, Engine, run_command
from tfenv.errors import UsageError
from tfenv.given_gpus import given, there
from tfenv.model import Cell
from tfenv.recorded import require_own
from tfenv.report import Check, Report
from tfenv.rootfs_run import Rootfs, find_driver
from tfenv.runline import choose_gpus, gpu_here
from tfenv.unpacked import Unpacked, read_unpacked
from tfenv.verify_lines import ROOTFS, of_lines
from tfenv.workspace import Workspace


@dataclass(frozen=True)
class Asked:
    """What the user asks for, of whatever image.

    Args:
        gpus: as of ``--gpus``. expect_gpus: how many the image shall see; None for any number.
        lines_suite: the suite that lines which were printed elsewhere have to be of; None for any.
    """

    suite: verify.Suite = "full"
    gpus: str = "auto"
    expect_gpus: int | None = None
    lines_suite: verify.Suite | None = None


def smi(argv: Sequence[str]) -> Completed:
    """Run a command of the driver, also where it is in NVIDIA's own folder and not on the path."""
    folder = find_driver().folder
    found = folder / "bin" / argv[0] if folder else None
    return run_command([str(found), *argv[1:]] if found and found.exists() else list(argv))


def in_rootfs(
    image: Unpacked,
    declared: Mapping[str, Any],
    asked: Asked,
    *,
    on_check: Callable[[Check], None] = lambda _check: None,
) -> Report:
    """Run the suite in an unpacked image on this host.

    Raises:
        NotReadyError: this host cannot run it.
    """
    engine = Engine(kernel=platform.release(), server_version=ROOTFS)
    wanted, _ = choose_gpus(asked.gpus, gpu_here(lambda argv: smi(argv).returncode == 0))
    gpus, start = there(given(wanted), smi), Rootfs(image, keep=os.environ).container
    return verify.verify_image(
        image.digest,
        declared,
        digest=image.digest,
        host=verify.host_facts(smi, engine, gpus=gpus),
        runner=verify.on_loopback(start) if asked.suite == "workers" else verify.in_one(start),
        suite=asked.suite,
        gpus=gpus,
        expect_gpus=asked.expect_gpus,
        on_check=on_check,
    )


def of_cell(
    workspace: Workspace,
    cell: Cell,
    host: build.Host,
    asked: Asked,
    *,
    rootfs: Path | None,
    lines: Path | None,
    digest: str = "",
) -> Report:
    """The verdict on the cell's image in ``rootfs``, or on what the suite printed into ``lines``.

    Args:
        digest: of the image in which the lines were printed; empty for the one that is recorded.

    Raises:
        UsageError: nobody says which image it was, or it is another cell's.
        NotReadyError: this host cannot run it.
    """
    lock = workspace.lock(cell)
    if rootfs is not None:
        image = read_unpacked(rootfs)
        require_own(workspace, cell, image.digest, str(rootfs))
        declared = pipeline.declared(cell, lock, image.digest)

        def tell(done: Check) -> None:
            host.console.note(f"  {done.status:<8} {done.name}  {report.summary(done)}")

        made = in_rootfs(image, declared, asked, on_check=tell)
    else:
        assert lines is not None
        known = image_digest(workspace, cell, digest)
        made = of_lines(
            lines, pipeline.declared(cell, lock, known), known, asked.lines_suite, tell=host.console.warn
        )
    return replace(made, image=cell.name)


def image_digest(workspace: Workspace, cell: Cell, said: str) -> str:
    """The digest that the user said, else the recorded one.

    Raises:
        UsageError: neither is known, or what was said is the recorded one of another cell.
    """
    recorded = digests.read(workspace.folder(cell))
    if said:
        require_own(workspace, cell, whole_digest(said), "what --digest names")
        return said
    if recorded is None:
        raise UsageError(
            f"no digest is recorded for {cell.name}, so the lines cannot be of it",
            remedy=f"run `tfenv build {cell.name} --record` first, or name the image's with --digest",
        )
    return recorded.manifest


def whole_digest(text: str) -> str:
    """The digest as it is written in full.

    Raises:
        UsageError: it is not.
    """
    if not re.fullmatch("sha256:[0-9a-f]{64}", text):
        raise UsageError(f"{text} is not a digest", remedy="give all of it: sha256:...")
    return text
