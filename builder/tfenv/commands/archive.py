"""``tfenv archive``"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tfenv.commands._common import each, emit, json_option
from tfenv.errors import EXIT_FAILED, EXIT_OK, UsageError

if TYPE_CHECKING:
    from tfenv.model import Cell
    from tfenv.snapshot.archive import Archived


@click.command("archive")
@click.argument("cells", nargs=-1, metavar="[CELL]...")
@click.option("--all", "every", is_flag=True, help="All cells of the matrix.")
@click.option("--to", metavar="DIR|HOST/NAME", help="A folder of snapshots, or a repository in a registry.")
@click.option(
    "--verify",
    metavar="DIR|HOST/NAME:TAG",
    help="Archive nothing: rehash everything there, and name what is missing or changed.",
)
@click.option("--stand-in", is_flag=True, help="On a stand-in for a base image that cannot be pulled.")
@json_option
def command(
    cells: tuple[str, ...], every: bool, to: str | None, verify: str | None, stand_in: bool, as_json: bool
) -> int:
    """Put cells with all their inputs into a folder from which they can be rebuilt.

    CELL is built first where the store has no build of it. Files that several snapshots have in common are
    stored once. Exit codes: 0 archived or whole, 1 damaged, 2 usage, 4 host, disk or network not ready.
    """
    if bool(to) == bool(verify):
        raise UsageError(
            "neither --to nor --verify is given" if not to else "--to and --verify are given",
            remedy="type: tfenv archive CELL --to DIR   or: tfenv archive --verify DIR",
        )
    if verify:
        if cells or every:
            raise UsageError("--verify takes no cells", remedy="type: tfenv archive --verify DIR")
        return _verify(verify, as_json)
    return _archive(cells, every, str(to), stand_in, as_json)


def _verify(text: str, as_json: bool) -> int:
    from tfenv.console import Console
    from tfenv.snapshot import choosing
    from tfenv.snapshot.check import check
    from tfenv.snapshot.layout import Layout

    place = choosing.parse(text)
    if isinstance(place, choosing.InRegistry):
        from tfenv.snapshot import registry

        checked = registry.check(place, os.environ)
    else:
        if place.name:
            raise UsageError("--verify looks at a whole folder", remedy=f"type: --verify {place.folder}")
        checked = check(Layout(place.folder))
    for problem in checked.problems:
        Console().note(str(problem))
    if checked.problems:
        Console().note(
            "-> take these files from another copy of the folder, or archive the cell to the same place again"
            " (tfenv archive CELL --to ...), which replaces those that it writes anew;"
            " tfenv rebuild takes inputs that are damaged here from the store or your network"
        )
    emit(
        {
            "place": text,
            "snapshots": list(checked.snapshots),
            "blobs": checked.blobs,
            "bytes": checked.bytes,
            "problems": [
                {
                    "snapshot": p.snapshot,
                    "file": p.title,
                    "digest": p.digest,
                    "state": p.state,
                    "size": p.size,
                    "found": p.found,
                    "why": p.why,
                }
                for p in checked.problems
            ],
            "unused": list(checked.unused),
        },
        as_json=as_json,
        text=_words(text, checked),
    )
    return EXIT_FAILED if checked.problems else EXIT_OK


def _words(text: str, checked: object) -> str:
    from tfenv.console import size
    from tfenv.snapshot.check import Checked

    assert isinstance(checked, Checked)
    kept, wrong = len(checked.snapshots), len(checked.problems)
    held = f"{kept} snapshot{'s' * (kept != 1)}, {checked.blobs} files, {size(checked.bytes)}"
    damaged = "1 file is damaged" if wrong == 1 else f"{wrong} files are damaged"
    verdict = damaged if wrong else "every file has its hash"
    unused = f"\n{len(checked.unused)} files that no snapshot names" if checked.unused else ""
    return f"{text}: {held}: {verdict}{unused}"


def _archive(cells: tuple[str, ...], every: bool, to: str, stand_in: bool, as_json: bool) -> int:
    from tfenv import pipeline
    from tfenv.build import Host
    from tfenv.console import Console, size
    from tfenv.snapshot import choosing, registry
    from tfenv.snapshot.archive import archive
    from tfenv.store import default_store
    from tfenv.workspace import here

    workspace = here()
    host = Host(default_store(os.environ), Console(), os.environ)
    place = choosing.target(to)
    chosen = workspace.cells(cells, every=every)

    def action(cell: Cell) -> int:
        inputs = pipeline.committed(workspace, cell)
        if stand_in:
            inputs = pipeline.on_stand_in(inputs, host)
        folder = place.folder if isinstance(place, choosing.InFolder) else registry.between(host.store)
        made = archive(
            inputs,
            host,
            folder,
            cell_folder=workspace.folder(cell),
            reports=host.store.root / "reports",
        )
        where = f"{folder}:{made.name}"
        if isinstance(place, choosing.InRegistry):
            where = str(registry.push(made, place, host))
        emit(
            {**_told(made), "cell": cell.name, "snapshot": where},
            as_json=as_json,
            text=f"{cell.name}: {made.files} files, {size(made.bytes)}, {size(made.new_bytes)} of them new"
            f"{' (it was there already)' if made.known else ''}\n  {made.digest}\n"
            f"  to rebuild it: tfenv rebuild {where}",
        )
        return EXIT_OK

    return each(chosen, lambda c: c.name, action, host.console, as_json=as_json)


def _told(made: Archived) -> dict[str, object]:
    return {
        "manifest": made.digest,
        "files": made.files,
        "bytes": made.bytes,
        "new_bytes": made.new_bytes,
        "known": made.known,
    }
