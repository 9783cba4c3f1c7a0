"""``tfenv rollback``"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tfenv.commands._common import emit, json_option
from tfenv.errors import EXIT_UNVERIFIED, UsageError

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.history.back import Back

_UNVERIFIED = {"unverified": "no check failed, and not every check could be run", "": "it was never checked"}


@click.command("rollback")
@click.argument("alias", metavar="ALIAS")
@click.option("--to", metavar="DATE", help="The image that it meant on that day, e.g. 2026-11-30.")
@click.option("--release", is_flag=True, help="Let it go again: it follows its cell's image as before.")
@click.option("--dry-run", is_flag=True, help="Only say what it would go back to.")
@json_option
def command(alias: str, to: str | None, release: bool, dry_run: bool, as_json: bool) -> int:
    """Take an alias such as 2.15-cu12 back to the last image that it meant and that was verified.

    It is held there: `tfenv up` and `tfenv build` leave it alone, and say so, until --release. `tfenv run`,
    `verify`, `stress`, `bench`, `bisect` and `doctor --in` of that alias take the image it was taken back to.

    Exit codes: 0 it means a verified image, 1 the image is gone, 3 it means one that is not verified.
    """
    from tfenv.console import Console
    from tfenv.history import back
    from tfenv.history.verdicts import everywhere
    from tfenv.store import default_store
    from tfenv.workspace import here_or_checkout

    console = Console()
    workspace, store = here_or_checkout(console.note), default_store(os.environ)
    if release and (to or dry_run):
        raise UsageError(
            "--release goes with no other option", remedy=f"type: tfenv rollback {alias} --release"
        )
    name = back.full_name(alias, workspace.matrix)
    if release:
        (cell,) = workspace.cells((name,))
        canonical = workspace.tags(cell)[0]
        digest = back.release(name, canonical, store, os.environ)
        emit({"name": name, "digest": digest, "held": False}, as_json=as_json, text=f"{name}\n  {digest}")
        console.note(f"{name} is no longer held back: it follows {canonical}")
        return 0
    verdicts = everywhere(workspace.images, store.root)
    done = back.roll_back(name, store, os.environ, verdicts, to=to or "", dry_run=dry_run)
    emit(_plain(done, dry_run), as_json=as_json, text=f"{name}\n  {done.choice.event.after}")
    _tell(console, done, dry_run=dry_run)
    return 0 if done.choice.verified else EXIT_UNVERIFIED


def _plain(done: Back, dry_run: bool) -> dict[str, object]:
    event = done.choice.event
    return {
        "name": done.name,
        "before": done.before,
        "digest": event.after,
        "cell": event.cell,
        "meant_since": event.at,
        "verdict": done.choice.verdict,
        "failed": list(done.choice.passed_over),
        "loaded": done.loaded,
        "held": not dry_run,
    }


def _tell(console: Console, done: Back, *, dry_run: bool) -> None:
    event, verdict = done.choice.event, done.choice.verdict
    for digest in done.choice.passed_over:
        console.note(f"passed over: {digest[:19]} has failed its checks")
    if not done.choice.verified:
        console.warn(f"{event.after[:19]} is NOT verified: {_UNVERIFIED.get(verdict, verdict)}")
    if done.loaded:
        console.note("loaded from the archive in the store")
    since = f", which it meant since {event.at}" if event.at else ""
    if dry_run:
        console.note(f"{done.name} would go back to {event.after[:19]}{since}; nothing was moved")
        return
    console.note(f"{done.name} means {event.after[:19]} again{since}")
    console.note(f"it is held there until: tfenv rollback {done.name} --release")
