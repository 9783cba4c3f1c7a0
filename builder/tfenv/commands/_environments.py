"""What commands do with a team's environment that they do otherwise with a row's cell."""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

from tfenv.commands._common import emit
from tfenv.errors import DriftError

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.lock import Upgrade
    from tfenv.model import Environment
    from tfenv.outdated import Subject
    from tfenv.team.model import TeamLock
    from tfenv.workspace import Workspace


def lock(
    workspace: Workspace,
    cell: Environment,
    console: Console,
    *,
    upgrade: Set[Upgrade],
    packages: Sequence[str],
    check: bool,
    as_json: bool,
) -> int:
    """Lock one environment and say what has changed; its exit code."""
    from tfenv.team import flow
    from tfenv.team.locking import OWN_UPGRADES
    from tfenv.team.resolvers import host_resolvers

    own = upgrade & set(OWN_UPGRADES)
    if upgrade and not own:
        console.note(
            f"{cell.name}: its base and its Python are those of {cell.start.name}; nothing to upgrade"
        )
    if own or packages or not workspace.is_locked(cell):
        what = ", ".join([*sorted(own), *packages]) or "everything"
        console.note(f"{cell.name}: resolving {what} on {cell.start.name}")
    previous, made = flow.relock(
        workspace, cell, upgrade=own, packages=packages, resolvers=host_resolvers(os.environ)
    )
    if check and previous != made:
        raise DriftError(
            f"the lock of {cell.name} is {'missing' if previous is None else 'not up to date'}",
            remedy=f"type: tfenv lock {cell.name}",
        )
    if previous != made:
        flow.write_lock(workspace, cell, made)
    told = summary(previous, made)
    emit(told, as_json=as_json, text=in_words(told))
    return 0


def summary(previous: TeamLock | None, made: TeamLock) -> dict[str, Any]:
    """What a lock holds, and what of it is not as it was."""
    before = {w.name: w.version for w in previous.wheels} if previous else {}
    after = {wheel.name: wheel.version for wheel in made.wheels}
    changes = [
        {"name": name, "from": before.get(name, ""), "to": after.get(name, "")}
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    return {
        "cell": made.cell,
        "row": made.row.cell,
        "changed": previous != made,
        "changes": changes if previous is not None else [],
        "wheels": len(made.wheels),
        "debian": len(made.debian),
        "bytes": sum(w.size for w in made.wheels) + sum(p.size for p in made.debian),
    }


def in_words(told: dict[str, Any]) -> str:
    """A summary for people."""
    text = (
        f"{told['cell']}: {'locked' if told['changed'] else 'unchanged'}, {told['wheels']} wheels and "
        f"{told['debian']} Debian packages ({told['bytes'] / 1e6:.0f} MB) on {told['row']}"
    )
    for change in told["changes"]:
        text += f"\n  {change['name']} {change['from'] or 'new'} -> {change['to'] or 'gone'}"
    return text


def subjects(workspace: Workspace, cell: Environment) -> list[Subject]:
    """What ``outdated`` looks at: the row that an environment stands on, and what the environment adds."""
    from dataclasses import replace

    from tfenv.outdated import Subject
    from tfenv.team import flow, joined
    from tfenv.team.behind import behind_now

    row, team = workspace.find_lock(cell.start), flow.team_lock(workspace, cell)
    below = Subject(cell=cell.start, lock=row)
    if row is None or team is None:
        return [below, Subject(cell=cell, lock=None)]
    own = replace(joined.layer(cell, row, team), wheels=team.wheels)
    return [below, Subject(cell=cell, lock=own, row=row, behind=behind_now(workspace, cell, team))]


def explain(workspace: Workspace, cell: Environment) -> tuple[dict[str, Any], list[str]]:
    """What there is to say of an environment, as data and in lines."""
    from tfenv.store import default_store
    from tfenv.team import telling
    from tfenv.team.about import about

    told = about(workspace, cell, default_store(os.environ))
    return told.as_dict(), telling.lines(told)
