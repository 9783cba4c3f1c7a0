"""``tfenv licenses``"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from tfenv.commands._common import emit, json_option
from tfenv.errors import TfenvError

if TYPE_CHECKING:
    from tfenv.diff.sides import Room
    from tfenv.sbom import Bill, Component


@click.command("licenses")
@click.argument("of", metavar="CELL|IMAGE")
@json_option
def command(of: str, as_json: bool) -> int:
    """List the licence of each part of an image, and where it is said; what nothing says is unknown.

    Of a cell its image in the engine is read, and where there is none, the files that the store has.
    """
    from tfenv.console import Console
    from tfenv.diff import sides
    from tfenv.workspace import here_or_checkout

    console = Console()
    room = sides.here(os.environ, here_or_checkout(console.note))
    bill, source = _bill(of, room)
    parts = [part for part in bill.components if part.in_image and part.kind != "system"]
    unknown = [part for part in parts if not part.licence.known]
    owned = [part for part in parts if part.licence.proprietary]
    emit(
        {
            "subject": bill.subject,
            "version": bill.version,
            "source": source,
            "parts": [_plain(part) for part in parts],
            "not_listed": list(bill.gaps),
        },
        as_json=as_json,
        text=_table(parts),
    )
    console.note(f"{bill.subject}, by {source}: {len(parts)} parts")
    if owned:
        console.note(f"proprietary: {', '.join(part.name for part in owned)}: see the files named above")
    if unknown:
        console.warn(f"unknown: {len(unknown)}: {', '.join(part.name for part in unknown)}")
    for gap in bill.gaps:
        console.warn(f"not listed: {gap}")
    return 0


def _bill(name: str, room: Room) -> tuple[Bill, str]:
    """The bill, and in words what it was read from."""
    from tfenv.commands.sbom import bill_of
    from tfenv.diff import sides
    from tfenv.lockfile import lock_hash
    from tfenv.sbom import of_image

    cell = sides.cell_of(name, room)
    if cell is None:
        return bill_of(name, room, from_files=False), "the image"
    lock = room.workspace.lock(cell)
    image_name = room.workspace.tags(cell)[0]
    try:
        image = sides.open_side(image_name, room)
        if image.labels.values.get("dev.tfenv.lock", "") == f"sha256:{lock_hash(lock)}":
            return of_image(image, lock), f"its image {image_name}"
    except TfenvError:
        pass  # no engine, or no image: the store may do
    return bill_of(name, room, from_files=True), "the files in the store; build the cell to have all"


def _plain(part: Component) -> dict[str, Any]:
    licence = part.licence
    return {
        "kind": part.kind,
        "name": part.name,
        "version": part.version,
        "expression": licence.expression,
        "names": list(licence.names),
        "source": licence.source,
        "file": licence.file,
        "proprietary": licence.proprietary,
        "known": licence.known,
    }


def _table(parts: list[Component]) -> str:
    rows = [(f"{part.name} {part.version}", part.licence.words, _where(part)) for part in parts]
    width = min(max((len(row[0]) for row in rows), default=0), 44)
    return "\n".join(f"{name:<{width}}  {words}{where}" for name, words, where in rows)


def _where(part: Component) -> str:
    said = [part.licence.source] if part.licence.source else []
    said += [part.licence.file] if part.licence.file and part.licence.proprietary else []
    said += ["PROPRIETARY"] if part.licence.proprietary else []
    return f"  [{'; '.join(said)}]" if said else ""
