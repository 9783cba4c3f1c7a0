"""``tfenv list``"""

from __future__ import annotations

import click

from tfenv.commands._common import emit, json_option


@click.command("list")
@click.option("--refused", is_flag=True, help="Show the combinations that are refused, and why.")
@json_option
def command(refused: bool, as_json: bool) -> None:
    """Show the cells of matrix.yaml, their aliases and state."""
    from tfenv import digest
    from tfenv.console import Console
    from tfenv.workspace import here_or_checkout

    console = Console()
    workspace = here_or_checkout(console.note)
    matrix = workspace.matrix
    cells = [
        {
            "cell": cell.name,
            "tensorflow": cell.row.tensorflow,
            "cuda": cell.row.cuda_set.cuda,
            "cudnn": cell.row.cuda_set.cudnn,
            "python": cell.python,
            "base": cell.base.name,
            "aliases": list(workspace.aliases[cell.name][1:]),
            "tags": list(workspace.tags(cell)),
            "locked": workspace.find_lock(cell) is not None,
            "manifest": recorded.manifest if (recorded := digest.read(workspace.folder(cell))) else None,
        }
        for cell in matrix.cells
    ]
    if as_json:
        told = [{"cell": name, "why": why} for name, why in matrix.refused]
        emit({"cells": cells, "refused": told} if refused else cells, as_json=True)
        return
    for cell, tag in zip(matrix.cells, cells, strict=True):
        state = "locked" if tag["locked"] else "not locked"
        short = ", ".join(name.split(":")[1] for name in workspace.tags(cell)[1:])
        click.echo(f"{cell.name}  {state}  {short}")
    if not cells:
        console.note("no cell: matrix.yaml gives no combination that is not refused")
    if matrix.refused and not refused:
        console.note(f"{len(matrix.refused)} refused: tfenv list --refused")
    if refused:
        for name, why in matrix.refused:
            click.echo(f"{name}  refused: {why}")
