"""``tfenv sbom``"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfenv.commands._common import emit, json_flag
from tfenv.errors import UsageError

if TYPE_CHECKING:
    from tfenv.diff.sides import Room
    from tfenv.sbom import Bill


@click.command("sbom")
@click.argument("of", metavar="CELL|IMAGE")
@click.option(
    "--format",
    "form",
    type=click.Choice(["cyclonedx", "spdx"]),
    default="cyclonedx",
    show_default=True,
    help="CycloneDX 1.6 or SPDX 2.3, both as JSON.",
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this file.")
@click.option(
    "--licenses", is_flag=True, help="Of a cell: with licences, read from the files that the store has."
)
@json_flag("Errors as JSON too; the document is JSON anyway.")
def command(of: str, form: str, output: Path | None, licenses: bool, as_json: bool) -> int:
    """List all that is in an image: Debian packages, wheels, Python and base, with hashes.

    Of a cell the list is made from its lock, and is the same on every machine. Of an image (repository:tag or
    an archive) it is what is installed in it, with licences; where that is not what was locked, it is said.
    """
    from tfenv import sbom
    from tfenv.console import Console
    from tfenv.diff import sides
    from tfenv.workspace import here_or_checkout

    console = Console()
    room = sides.here(os.environ, here_or_checkout(console.note))
    bill = bill_of(of, room, from_files=licenses)
    for told in (*bill.gaps, *bill.differences):
        console.warn(told)
    text = sbom.dump(sbom.FORMATS[form](bill))
    if output is None:
        click.echo(text, nl=False)
        return 0
    write(output, text)
    emit({"file": str(output), "components": len(bill.components)}, as_json=as_json)
    console.note(f"{output}: {len(bill.components)} parts")
    return 0


def bill_of(name: str, room: Room, *, from_files: bool) -> Bill:
    """The bill of a cell's lock, or of an image.

    Args:
        from_files: of a lock with the licences that the store's files tell.
    """
    from tfenv import sbom
    from tfenv.diff import sides
    from tfenv.sbom.evidence import from_store
    from tfenv.sbom.finding import lock_of

    cell = sides.cell_of(name, room)
    if cell is not None:
        lock = room.workspace.lock(cell)
        return sbom.bill_of_lock(lock, from_store(room.store)) if from_files else sbom.bill_of_lock(lock)
    image = sides.open_side(name, room)
    if image.kind == "snapshot":
        raise UsageError(
            f"{name} is a snapshot, which holds its lists already",
            remedy="see sbom/ in it, or name the cell or the image",
        )
    return sbom.of_image(image, lock_of(image, room.workspace, room.store))


def write(file: Path, text: str) -> None:
    """Write all of a file or nothing.

    Raises:
        NotReadyError: the folder cannot be written.
    """
    from tfenv.files import write_all

    write_all(file.parent, {file.name: text})
