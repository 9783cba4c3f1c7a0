"""``tfenv new``"""

from __future__ import annotations

import os
from pathlib import Path

import click

from tfenv import times
from tfenv.commands._common import emit, json_option


@click.command("new")
@click.argument("name", metavar="NAME")
@click.option(
    "--from", "start", metavar="CELL", required=True, help="The cell that it extends, e.g. 2.15-cu12."
)
@click.option(
    "-r",
    "--requirements",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File with the team's packages; may be given again.",
)
@click.option("--apt", multiple=True, metavar="PACKAGE", help="Debian package on top; may be given again.")
@click.option(
    "--extra", "extras", multiple=True, metavar="NAME", help="Ready-made addition: jupyter or devel."
)
@click.option(
    "--exclude-newer",
    metavar="TIME",
    default=times.now,
    help="No wheel uploaded later is locked, e.g. 2024-06-01T00:00:00Z. Default: now.",
)
@click.option("--replace", is_flag=True, help="In place of the environment of that name.")
@json_option
def command(
    name: str,
    start: str,
    files: tuple[Path, ...],
    apt: tuple[str, ...],
    extras: tuple[str, ...],
    exclude_newer: str,
    replace: bool,
    as_json: bool,
) -> int:
    """Add a team's environment: a cell, and packages of the team's own on top of its image.

    They are resolved together with TensorFlow and locked by hash. Where they conflict, nothing is written.
    """
    from tfenv import lock
    from tfenv.commands._environments import in_words, summary
    from tfenv.console import Console
    from tfenv.team import adding, resolvers
    from tfenv.team.extras import extras as known
    from tfenv.workspace import here

    console = Console()
    wish = adding.Wish(
        name=name,
        start=start,
        files=files,
        apt=apt,
        extras=extras,
        exclude_newer=exclude_newer,
        replace=replace,
    )
    made, locked = adding.add(
        here(),
        wish,
        rows=lock.host_resolvers(os.environ),
        resolvers=resolvers.host_resolvers(os.environ),
    )
    for extra in extras:
        if note := known()[extra].note:
            console.note(f"{extra}: {note}")
    told = summary(None, locked)
    emit(told, as_json=as_json, text=f"{in_words(told)}\nnext: tfenv up {made.name}")
    return 0
