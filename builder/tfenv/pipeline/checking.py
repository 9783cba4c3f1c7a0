"""The verification suite in an image of the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import build, render
from tfenv.engine import run_command
from tfenv.given_gpus import given
from tfenv.runline import choose_gpus, gpu_here

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.images import Image
    from tfenv.model import Cell, Lock
    from tfenv.report import Report
    from tfenv.verify import Suite


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
            host=verify.host_facts(run_command, engine, gpus=given(wanted)),
            runner=runner,
            suite=suite,
            gpus=given(wanted),
            expect_gpus=expect_gpus,
            endpoint=engine.endpoint,
            on_check=tell,
            stand_in=stand_in,
        )
    made = replace(made, image=cell.name)
    return made, report.write(made, reports or host.store.root / "reports")
