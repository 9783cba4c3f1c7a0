"""``tfenv render``"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfenv.commands._common import cells_arguments, each, emit, json_option
from tfenv.model import Cell, Environment

if TYPE_CHECKING:
    from tfenv.workspace import Workspace


@click.command("render")
@cells_arguments
@click.option("--check", is_flag=True, help="Write nothing; fail if a generated file is not current.")
@json_option
def command(cells: tuple[str, ...], every: bool, check: bool, as_json: bool) -> int:
    """Write the Dockerfiles from the matrix and the locks.

    Without a cell: all that are locked, and with --check all that are in the matrix.
    """
    from tfenv import render
    from tfenv.console import Console
    from tfenv.files import write_all
    from tfenv.workspace import here

    workspace, console = here(), Console()
    chosen = workspace.cells(cells, every=every or not cells)
    if not cells and not every and not check:
        chosen = tuple(cell for cell in chosen if workspace.is_locked(cell))

    current = []

    def one(cell: Cell) -> int:
        files = workspace.rendered(cell)
        changed = render.drift(workspace.folder(cell), files)
        if check:
            _require_current(workspace, cell)
            render.raise_drift({cell.name: changed})
        elif changed:
            write_all(workspace.folder(cell), {name: files[name] for name in changed})
        told = {"cell": cell.name, "files": sorted(files), "changed": list(changed)}
        if not changed and not cells and not as_json:
            current.append(cell)  # a hundred lines of it would hide the few that count
        else:
            text = f"{cell.name}: {', '.join(changed) + ' written' if changed else 'current'}"
            emit(told, as_json=as_json, text=text)
        return 0

    if check and not cells:
        render.raise_orphans(workspace.images, {cell.name for cell in workspace.cells((), every=True)})
    code = each(chosen, lambda c: c.name, one, console, as_json=as_json)
    if current:
        click.echo(f"{len(current)} current")
    return code


def _require_current(workspace: Workspace, cell: Cell) -> None:
    if isinstance(cell, Environment):
        from tfenv.team import flow

        flow.require_current(workspace, cell)
        return
    from tfenv.lock import require_current
    from tfenv.render import template_version

    require_current(cell, workspace.lock(cell), template_version(cell.base.kind))
