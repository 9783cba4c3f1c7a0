"""``tfenv history``"""

from __future__ import annotations

import os

import click

from tfenv.commands._common import emit, json_option
from tfenv.errors import NotReadyError, UsageError


@click.command("history")
@click.argument("alias", required=False, metavar="[ALIAS]")
@json_option
def command(alias: str | None, as_json: bool) -> int:
    """Show what each name of an image meant on this machine, when and why; the newest first.

    Without ALIAS all names, with what each means now.
    """
    from tfenv import images
    from tfenv.console import Console
    from tfenv.history import state, telling
    from tfenv.history import verdicts as verdicts_of
    from tfenv.history.log import Log
    from tfenv.store import default_store
    from tfenv.workspace import here_or_checkout

    console = Console()
    workspace, store = here_or_checkout(console.note), default_store(os.environ)
    log = Log(store.root)
    found = log.read()
    if found.damaged:
        console.warn(f"{found.damaged} lines of {log.path} cannot be read (cut off by a kill?): left out")
    if found.newer:
        console.warn(f"{found.newer} lines of {log.path} were written by a newer tfenv: left out")
    events = found.events
    if alias:
        name = state.full_name(alias, workspace.matrix.repository)
        events = state.of(events, name)
        if not events:
            raise UsageError(f"nothing is written down of {name}", remedy="see all names: tfenv history")
    names = state.names(events)
    try:
        now = images.ids(names, os.environ) if names else {}
    except NotReadyError as error:
        now = None
        console.warn(f"what is in the engine now is not known: {error.message}")
    verdicts = verdicts_of.everywhere(workspace.images, store.root)
    holding = state.held(events)
    text = [telling.lines(events, name, now, verdicts) for name in names]
    if not alias:
        text = [
            lines[:2] + ([f"  ... and {len(lines) - 2} before"] if len(lines) > 2 else []) for lines in text
        ]
    emit(
        [telling.plain(event, now, event is holding.get(event.name), verdicts) for event in events],
        as_json=as_json,
        text="\n".join(line for lines in text for line in lines),
    )
    if not names:
        console.note("nothing is written down yet: names are when tfenv moves them")
    return 0
