"""``tfenv up``"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tfenv.commands._common import emit, gpus_option, json_option
from tfenv.errors import EXIT_FAILED

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.digest import Likeness
    from tfenv.images import Image
    from tfenv.inputs import Inputs
    from tfenv.workspace import Workspace

NOT_LOCKED = "NOT the locked digest: today's Debian packages"


@click.command("up")
@click.argument("cell", metavar="CELL")
@click.option(
    "--stand-in", is_flag=True, help="Build on a stand-in for the base image, made from NVIDIA's wheels."
)
@gpus_option
@json_option
def command(cell: str, stand_in: bool, gpus: str, as_json: bool) -> int:
    """Lock, render, build and verify one cell; tag it unless a check failed.

    What is committed is used as it is. Where the engine has the image of the recorded digest, it is taken,
    and nothing is fetched or built. Where a mirror no longer has a locked Debian package, today's version
    is taken instead, and the image is marked as not the locked one.
    """
    from tfenv import pipeline
    from tfenv.build import Host
    from tfenv.console import Console
    from tfenv.report import failures
    from tfenv.store import default_store
    from tfenv.workspace import here

    workspace = here()
    host = Host(default_store(os.environ), Console(), os.environ)
    (chosen,) = workspace.cells((cell,))
    _require_gpus(gpus, host)
    prepared = pipeline.prepare(workspace, chosen, host)
    if stand_in:
        prepared = pipeline.on_stand_in(prepared, host)
    inputs, image, likeness = _make(workspace, prepared, host)
    report, folder = pipeline.check(chosen, inputs.lock, image, host, gpus=gpus, stand_in=inputs.stand_in)
    failed = report.exit_code == EXIT_FAILED
    tags: tuple[str, ...] = ()
    if not failed:
        tags = pipeline.tag_image(workspace, inputs, image, host, why="tfenv up", verdict=report.verdict)
    mark = "" if inputs.locked else f" ({_not_locked(inputs)})"
    emit(
        {
            "cell": chosen.name,
            "manifest": image.id,
            "locked": inputs.locked,
            "likeness": likeness,
            "tags": list(tags),
            "verdict": report.verdict,
            "reason": report.reason,
            "words": f"{report.words}{mark}",
            "reports": str(folder),
        },
        as_json=as_json,
        text=f"{chosen.name}{mark}\n  {image.id}\n"
        + "".join(f"  {tag}\n" for tag in tags)
        + f"  reports: {folder}",
    )
    if failed:
        host.console.note(failures(report))
        host.console.note(f"no tag was moved, the image stays as {image.id}")
    host.console.note(f"{report.words}{mark}")
    return report.exit_code


def _require_gpus(gpus: str, host: Host) -> None:
    """Refuse GPUs that this host lacks, before anything is fetched or built.

    Raises:
        NotReadyError: it lacks one, or there is no engine.
    """
    from tfenv.build import ready_engine
    from tfenv.given_gpus import given, names, there
    from tfenv.verify_elsewhere import smi

    named = gpus if gpus in ("auto", "all", "none") else given(gpus)
    if not names(named):
        return
    endpoint = ready_engine(host.env).endpoint
    if not endpoint or endpoint.startswith(
        "unix://"
    ):  # one elsewhere has others, and says itself what it lacks
        there(named, smi)


def _not_locked(inputs: Inputs) -> str:
    if inputs.stand_in:
        return f"on a STAND-IN for {inputs.stand_in}"
    if not inputs.lock.complete:
        return f"NOT locked: the digest of {inputs.lock.base_image} is not known"
    return NOT_LOCKED


def _make(workspace: Workspace, inputs: Inputs, host: Host) -> tuple[Inputs, Image, Likeness]:
    """What the image is made of, the image, and how it relates to the recorded digest."""
    from tfenv import pipeline
    from tfenv.fetch import MissingInputs

    if recorded := pipeline.recorded_image(workspace, inputs, host):
        host.console.note(f"{inputs.cell.name}: the engine has the image of the recorded digest: it is taken")
        return inputs, recorded, "identical"
    try:
        made = pipeline.make(workspace, inputs, host)
    except MissingInputs as gone:
        if gone.wheels:
            raise
        host.console.warn(f"{gone.message}\ngoing on with today's versions: this is {NOT_LOCKED}")
        inputs = pipeline.todays(inputs, host)
        made = pipeline.make(workspace, inputs, host)
    return inputs, made.image, made.likeness
