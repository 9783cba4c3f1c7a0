"""``tfenv lock``"""

from __future__ import annotations

import os

import click

from tfenv.commands._common import cells_arguments, each, emit, json_option
from tfenv.model import Cell


@click.command("lock")
@cells_arguments
@click.option(
    "--upgrade",
    type=click.Choice(["all", "wheels", "debian"]),
    help="Resolve these anew. Without it, what is locked stays as it is.",
)
@click.option("--check", is_flag=True, help="Write nothing; fail if the lock is missing or would change.")
@json_option
def command(cells: tuple[str, ...], every: bool, upgrade: str | None, check: bool, as_json: bool) -> int:
    """Pin all inputs of cells by hash.

    Writes images/CELL/lock.json and requirements.lock. A lock that exists keeps its pins unless --upgrade
    says otherwise; only what needs no resolving (templates, epochs, trimming) follows the matrix.
    """
    from tfenv.console import Console
    from tfenv.errors import DriftError
    from tfenv.lock import host_resolvers, make_lock, write_lock
    from tfenv.lockfile import lock_hash
    from tfenv.render import template_version
    from tfenv.workspace import here

    workspace, console = here(), Console()
    wanted = {"wheels", "debian"} if upgrade == "all" else {upgrade} if upgrade else set()

    def one(cell: Cell) -> int:
        previous = workspace.find_lock(cell)
        if previous is None or wanted:
            console.note(f"{cell.name}: resolving {', '.join(sorted(wanted) or ['everything'])}")
        lock = make_lock(
            cell,
            previous,
            wanted,  # type: ignore[arg-type]
            template_version=template_version(),
            resolvers=host_resolvers(os.environ),
        )
        changed = lock != previous
        if check and changed:
            raise DriftError(
                f"the lock of {cell.name} is {'missing' if previous is None else 'not up to date'}",
                remedy=f"type: tfenv lock {cell.name}",
            )
        if changed:
            write_lock(lock, workspace.images)
        told = {
            "cell": cell.name,
            "lock": f"sha256:{lock_hash(lock)}",
            "changed": changed,
            "exclude_newer": lock.exclude_newer,
            "wheels": len(lock.wheels),
            "debian": len(lock.debian),
            "bytes": sum(w.size for w in lock.wheels) + sum(p.size for p in lock.debian),
        }
        state = "locked" if changed else "unchanged"
        text = (
            f"{cell.name}: {state}, {told['wheels']} wheels (none newer than {lock.exclude_newer}), "
            f"{told['debian']} Debian packages, {lock_hash(lock)[:12]}"
        )
        emit(told, as_json=as_json, text=text)
        return 0

    return each(workspace.cells(cells, every=every), lambda c: c.name, one, console, as_json=as_json)
