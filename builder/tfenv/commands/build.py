"""``tfenv build``"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfenv.commands._common import cells_arguments, each, emit, json_option
from tfenv.errors import UsageError

if TYPE_CHECKING:
    from tfenv.build import Built, Host
    from tfenv.model import Cell
    from tfenv.workspace import Workspace


@click.command("build")
@cells_arguments
@click.option(
    "--no-cache", is_flag=True, help="Build again although the store has it, without BuildKit's cache."
)
@click.option(
    "--check-reproducible", is_flag=True, help="Build twice without cache; fail if the digests differ."
)
@click.option("--record", is_flag=True, help="Write the digest to images/CELL/digest.json.")
@click.option(
    "--stage",
    type=click.Path(path_type=Path),
    help="Do not build: lay the build out in this new folder and print the docker line.",
)
@json_option
def command(
    cells: tuple[str, ...],
    every: bool,
    no_cache: bool,
    check_reproducible: bool,
    record: bool,
    stage: Path | None,
    as_json: bool,
) -> int:
    """Build cells to reproducible images and tag them."""
    from tfenv.build import Host
    from tfenv.console import Console
    from tfenv.store import default_store
    from tfenv.workspace import here

    workspace = here()
    host = Host(default_store(os.environ), Console(), os.environ)
    chosen = workspace.cells(cells, every=every)
    if stage and len(chosen) > 1:
        raise UsageError("--stage takes one cell", remedy="name one")
    if stage:
        action = _stage(workspace, host, stage, as_json)
    elif check_reproducible:
        action = _twice(workspace, host, record, as_json)
    else:
        action = _once(workspace, host, record, no_cache, as_json)
    return each(chosen, lambda c: c.name, action, host.console, as_json=as_json)


Action = Callable[["Cell"], int]


def _stage(workspace: Workspace, host: Host, folder: Path, as_json: bool) -> Action:
    def action(cell: Cell) -> int:
        from tfenv import pipeline
        from tfenv.build import stage_for_hand
        from tfenv.team import flow
        from tfenv.team.inputs import TeamInputs

        inputs = pipeline.committed(workspace, cell)
        if isinstance(inputs, TeamInputs):
            argv = flow.stage_for_hand(inputs, host, folder)
        else:
            argv = stage_for_hand(inputs, host, folder)
        emit({"cell": cell.name, "argv": argv}, as_json=as_json, text=shlex.join(argv))
        return 0

    return action


def _twice(workspace: Workspace, host: Host, record: bool, as_json: bool) -> Action:
    def action(cell: Cell) -> int:
        from tfenv import pipeline

        inputs = pipeline.committed(workspace, cell)
        first, second = pipeline.make_twice(inputs, host)
        made = pipeline.make(workspace, inputs, host, accept=record)
        tags = pipeline.tag(workspace, made, host)
        if record:
            pipeline.record(workspace, cell, second)
        seconds = [dict(built.seconds) for built in (first, second)]
        emit(
            {
                **_told(second),
                "reproducible": True,
                "likeness": made.likeness,
                "seconds": seconds,
                "tags": list(tags),
            },
            as_json=as_json,
            text=f"{cell.name}: two builds without cache gave {second.digest.manifest}; the engine keeps it",
        )
        return 0

    return action


def _once(workspace: Workspace, host: Host, record: bool, no_cache: bool, as_json: bool) -> Action:
    def action(cell: Cell) -> int:
        from tfenv import pipeline

        inputs = pipeline.committed(workspace, cell)
        made = pipeline.make(workspace, inputs, host, no_cache=no_cache, accept=record)
        tags = pipeline.tag(workspace, made, host)
        if record:
            pipeline.record(workspace, cell, made.built)
        what = "already built" if made.built.reused else "built"
        size = made.built.digest.compressed_bytes / 1e9
        text = f"{cell.name}: {what}, {size:.2f} GB, {made.built.digest.manifest} ({made.likeness})\n"
        emit(
            {**_told(made.built), "tags": list(tags), "likeness": made.likeness},
            as_json=as_json,
            text=text + "\n".join(f"  {tag}" for tag in tags),
        )
        return 0

    return action


def _told(built: Built) -> dict[str, object]:
    return {
        "cell": built.inputs.cell.name,
        "manifest": built.digest.manifest,
        "config": built.digest.config,
        "archive": str(built.archive),
        "compressed_bytes": built.digest.compressed_bytes,
        "seconds": dict(built.seconds),
        "reused": built.reused,
        "log": str(built.log) if built.log else None,
    }
