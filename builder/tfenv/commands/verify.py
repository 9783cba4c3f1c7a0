"""``tfenv verify``"""

from __future__ import annotations

import os
from pathlib import Path

import click

from tfenv.commands._common import cells_arguments, each, emit, gpus_option, json_option
from tfenv.model import Cell


@click.command("verify")
@cells_arguments
@click.option(
    "--suite",
    type=click.Choice(["smoke", "full"]),
    default="full",
    show_default=True,
    help="full also reads every installed file, and runs the longer checks.",
)
@gpus_option
@click.option("--reports", type=click.Path(path_type=Path), help="Folder for the reports.")
@json_option
def command(
    cells: tuple[str, ...], every: bool, suite: str, gpus: str, reports: Path | None, as_json: bool
) -> int:
    """Run the verification suite in built images.

    Exits 0 when verified, 1 when a check failed, 3 when something could not be verified: without a GPU an
    image is never verified.
    """
    from tfenv import images, pipeline
    from tfenv.build import Host
    from tfenv.console import Console
    from tfenv.report import to_ctrf
    from tfenv.store import default_store
    from tfenv.workspace import here_or_checkout

    host = Host(default_store(os.environ), Console(), os.environ)
    if reports:
        reports.mkdir(parents=True, exist_ok=True)  # before minutes of checks whose verdict it is to hold
    workspace = here_or_checkout(host.console.note)

    def one(cell: Cell) -> int:
        image = images.find(workspace.image_names(cell), os.environ)
        lock = pipeline.lock_of(workspace, cell, image, host)
        made, folder = pipeline.check(
            cell,
            lock,
            image,
            host,
            suite="full" if suite == "full" else "smoke",
            gpus=gpus,
            reports=reports,
        )
        data = {"cell": cell.name, "verdict": made.verdict, "digest": made.digest, "reports": str(folder)}
        text = f"{cell.name}: {made.words}\n  {made.digest}\n  reports: {folder}"
        emit({**data, "report": to_ctrf(made)}, as_json=as_json, text=text)
        return made.exit_code

    return each(workspace.cells(cells, every=every), lambda c: c.name, one, host.console, as_json=as_json)
