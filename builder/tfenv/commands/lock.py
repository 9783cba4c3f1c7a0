"""``tfenv lock``"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import cast

import click

from tfenv.commands._common import cells_arguments, each, emit, json_option, of_two_kinds, worst
from tfenv.errors import UsageError
from tfenv.model import Cell, Environment, Lock


@click.command("lock")
@cells_arguments
@click.option(
    "--upgrade",
    type=click.Choice(["all", "wheels", "debian", "python", "base"]),
    help="Resolve these anew (base: ask the registry for an image's digest). Else what is locked stays.",
)
@click.option(
    "--upgrade-package",
    "packages",
    multiple=True,
    metavar="NAME",
    help="Of a team's environment: resolve this package anew, and let all others stay.",
)
@click.option("--check", is_flag=True, help="Write nothing; fail if the lock is missing or would change.")
@json_option
def command(
    cells: tuple[str, ...],
    every: bool,
    upgrade: str | None,
    packages: tuple[str, ...],
    check: bool,
    as_json: bool,
) -> int:
    """Pin all inputs of cells by hash.

    Writes images/CELL/lock.json and requirements.lock. A lock that exists keeps its pins unless --upgrade
    says otherwise; only what needs no resolving (templates, epochs, trimming) follows the matrix.
    """
    from tfenv.console import Console
    from tfenv.errors import DriftError
    from tfenv.lock import UPGRADES, Upgrade, host_resolvers, make_lock, once_each, write_lock
    from tfenv.lockfile import lock_hash
    from tfenv.parallel import ahead
    from tfenv.render import template_version
    from tfenv.workspace import here

    workspace, console = here(), Console()
    wanted: set[Upgrade] = (
        set(UPGRADES) if upgrade == "all" else {cast("Upgrade", upgrade)} if upgrade else set()
    )
    resolvers = once_each(host_resolvers(os.environ))

    def resolve(cell: Cell) -> tuple[Lock | None, Lock]:
        previous = workspace.find_lock(cell)
        if previous is None or wanted:
            console.note(f"{cell.name}: resolving {', '.join(sorted(wanted) or ['everything'])}")
        lock = make_lock(
            cell,
            previous,
            wanted,
            template_version=template_version(cell.base.kind),
            resolvers=resolvers,
        )
        return previous, lock

    chosen, own = of_two_kinds(workspace.cells(cells, every=every))
    if packages and chosen:
        raise UsageError(
            f"{chosen[0].name} is no team's environment: its packages are resolved together",
            remedy=f"type: tfenv lock {chosen[0].name} --upgrade wheels",
        )

    def one(cell: Cell, result: Callable[[Cell], tuple[Lock | None, Lock]]) -> int:
        previous, lock = result(cell)
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
            "complete": lock.complete,
            "bytes": sum(w.size for w in lock.wheels) + sum(p.size for p in lock.debian),
        }
        state = "locked" if changed else "unchanged"
        text = (
            f"{cell.name}: {state}, {told['wheels']} wheels (none newer than {lock.exclude_newer}), "
            f"{told['debian']} Debian packages, {lock_hash(lock)[:12]}"
        )
        if not lock.complete:
            text += f"\n  the digest of {lock.base_image} is not known: tfenv lock {cell.name} --upgrade base"
        emit(told, as_json=as_json, text=text)
        return 0

    with ahead(resolve, chosen) as result:
        code = each(chosen, lambda c: c.name, lambda c: one(c, result), console, as_json=as_json)
    from tfenv.commands._environments import lock as lock_environment

    def environment(cell: Environment) -> int:
        return lock_environment(
            workspace, cell, console, upgrade=wanted, packages=packages, check=check, as_json=as_json
        )

    return worst([code, each(own, lambda c: c.name, environment, console, as_json=as_json)])
