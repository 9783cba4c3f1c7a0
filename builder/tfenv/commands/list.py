"""``tfenv list``"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tfenv.commands._common import emit, json_option
from tfenv.errors import UsageError
from tfenv.model import Environment

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.fanout import Wanted
    from tfenv.model import Cell, Lock
    from tfenv.workspace import Workspace

LOCKED, OPEN = "locked", "base not locked"
FORMATS = ("text", "json", "github", "names")


@click.command("list")
@click.option("--refused", is_flag=True, help="Show also the combinations that are refused, and why.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="text; json; names, one a line; github, the matrix of a GitHub Actions job.",
)
@click.option("--base", "bases", multiple=True, metavar="NAME", help="Only cells on this base.")
@click.option("--python", "pythons", multiple=True, metavar="X.Y", help="Only cells with this Python.")
@click.option(
    "--tensorflow", "releases", multiple=True, metavar="X.Y[.Z]", help="Only cells of this release."
)
@click.option("--locked", is_flag=True, help="Only cells that are locked, their base by digest.")
@click.option("--changed-since", metavar="REF", help="Only cells that changes since this commit concern.")
@click.option("--part", metavar="K/N", help="Only the K-th of N parts of these cells.")
@click.option(
    "--runner",
    metavar="LABEL",
    default="ubuntu-latest",
    show_default=True,
    help="The machine that jobs of --format github run on.",
)
@json_option
def command(
    refused: bool,
    form: str | None,
    bases: tuple[str, ...],
    pythons: tuple[str, ...],
    releases: tuple[str, ...],
    locked: bool,
    changed_since: str | None,
    part: str | None,
    runner: str,
    as_json: bool,
) -> None:
    """Show the cells of matrix.yaml, their aliases and state."""
    from tfenv.console import Console
    from tfenv.fanout import Wanted, github_matrix
    from tfenv.workspace import here_or_checkout

    form = _form(form, as_json, refused)
    console = Console()
    workspace = here_or_checkout(console.note)
    wanted = Wanted(bases=bases, pythons=pythons, releases=releases, locked=locked)
    cells = _cells(workspace, wanted, changed_since, part)
    if form == "github":
        click.echo(json.dumps(github_matrix(cells, runner), sort_keys=True))
    elif form == "names":
        click.echo("".join(f"{cell.name}\n" for cell in cells), nl=False)
    elif form == "json":
        told = [{"cell": name, "why": why} for name, why in workspace.matrix.refused]
        found = [_data(workspace, cell) for cell in cells]
        emit({"cells": found, "refused": told} if refused else found, as_json=True)
    else:
        _text(workspace, cells, console, refused=refused)


def _form(form: str | None, as_json: bool, refused: bool) -> str:
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} are two forms", remedy="give one of them")
    form = "json" if as_json else form or "text"
    if refused and form in ("github", "names"):
        raise UsageError("refused combinations are no jobs", remedy="use --refused with text or json")
    return form


def _cells(
    workspace: Workspace, wanted: Wanted, changed_since: str | None, part: str | None
) -> tuple[Cell, ...]:
    from tfenv import fanout

    every = workspace.cells((), every=True)
    cells = fanout.select(every, wanted, lambda cell: _state(workspace.find_lock(cell)) == LOCKED)
    if changed_since is not None:
        paths = fanout.changed_paths(workspace.matrix_path.parent, changed_since)
        cells = fanout.changed(cells, paths)
    return fanout.part_of(cells, *fanout.parse_part(part)) if part is not None else cells


def _state(lock: Lock | None) -> str:
    """``locked`` means all of it: where a registry could not be asked, an image has no digest yet."""
    if lock is None:
        return "not locked"
    return LOCKED if lock.complete else OPEN


def _told(workspace: Workspace, cell: Cell) -> str:
    from tfenv.lock import differences
    from tfenv.proven import proven

    if isinstance(cell, Environment):
        from tfenv.team.flow import state_of

        told = state_of(workspace, cell)
        if not told.startswith(LOCKED):
            return told
        return told.replace(LOCKED, proven(workspace, cell, workspace.find_lock(cell)).in_words or LOCKED, 1)
    lock = workspace.find_lock(cell)
    state = _state(lock)
    if state == OPEN:
        return f"{state} (type: tfenv lock {cell.name} --upgrade base)"
    late = differences(cell, lock) if state == LOCKED and lock is not None else {}
    if late:
        what = "all" if len(late) > 1 else next(iter(late))
        return f"lock out of date (type: tfenv lock {cell.name} --upgrade {what})"
    return proven(workspace, cell, lock).in_words or state


def _data(workspace: Workspace, cell: Cell) -> dict[str, Any]:
    from tfenv import digest
    from tfenv.proven import proven

    recorded = digest.read(workspace.folder(cell))
    lock = workspace.find_lock(cell)
    found = proven(workspace, cell, lock)
    return {
        "cell": cell.name,
        "tensorflow": cell.row.tensorflow,
        "cuda": cell.cuda_set.cuda,
        "cudnn": cell.cuda_set.cudnn,
        "python": cell.python,
        "base": cell.base.name,
        "row": cell.start.name if isinstance(cell, Environment) else None,
        "aliases": list(workspace.aliases.get(cell.name, ())[1:]),
        "tags": list(workspace.tags(cell)),
        "locked": _state(lock) == LOCKED,
        "verified": list(found.on),
        "failed": list(found.failed_on),
        "manifest": recorded.manifest if recorded else None,
    }


def _text(workspace: Workspace, cells: tuple[Cell, ...], console: Console, *, refused: bool) -> None:
    for cell in cells:
        short = ", ".join(name.split(":")[1] for name in workspace.tags(cell)[1:])
        click.echo(f"{cell.name}  {_told(workspace, cell)}  {short}".rstrip())
    matrix = workspace.matrix
    if not matrix.cells:
        console.note("no cell: matrix.yaml gives no combination that is not refused")
    if matrix.refused and not refused:
        console.note(f"{len(matrix.refused)} refused; why: tfenv list --refused")
    if refused:
        for name, why in matrix.refused:
            click.echo(f"{name}  refused: {why}")
