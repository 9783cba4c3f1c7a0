"""``tfenv up``"""

from __future__ import annotations

import os

import click

from tfenv.commands._common import emit, json_option


@click.command("up")
@click.argument("cell", metavar="CELL")
@click.option(
    "--gpus",
    type=click.Choice(["auto", "all", "none"]),
    default="auto",
    show_default=True,
    help="Give the image the host's GPUs while it is verified.",
)
@json_option
def command(cell: str, gpus: str, as_json: bool) -> int:
    """Lock, render, build and verify one cell.

    What is committed is used as it is. Where a mirror no longer has a locked Debian package, today's version
    is taken instead, and the image is marked as not the locked one.
    """
    from tfenv import pipeline
    from tfenv.build import Host
    from tfenv.console import Console
    from tfenv.fetch import MissingInputs
    from tfenv.store import default_store
    from tfenv.workspace import here

    workspace = here()
    host = Host(default_store(os.environ), Console(), os.environ)
    (chosen,) = workspace.cells((cell,))
    lock = pipeline.prepare(workspace, chosen, host)
    locked = True
    try:
        made = pipeline.build_cell(workspace, chosen, host)
    except MissingInputs as gone:
        if gone.wheels:
            raise
        host.console.warn(f"{gone.message}\ngoing on with today's versions: this is NOT the locked digest")
        lock, locked = pipeline.todays_lock(chosen, lock, host), False
        made = pipeline.build_cell(workspace, chosen, host, lock=lock)
    report, folder = pipeline.verify_cell(workspace, chosen, host, lock=lock, gpus=gpus)
    not_locked = "" if locked else " (NOT the locked digest: today's Debian packages)"
    emit(
        {
            "cell": chosen.name,
            "manifest": made.built.digest.manifest,
            "locked": locked,
            "likeness": made.likeness,
            "tags": list(made.tags),
            "verdict": report.verdict,
            "reports": str(folder),
        },
        as_json=as_json,
        text=f"{chosen.name}{not_locked}\n  {made.built.digest.manifest} ({made.likeness})\n"
        + "".join(f"  {tag}\n" for tag in made.tags)
        + f"  reports: {folder}",
    )
    host.console.note(f"{report.words}{not_locked}")
    return report.exit_code
