"""``tfenv build``"""

from __future__ import annotations

import os
from pathlib import Path

import click

from tfenv.commands._common import cells_arguments, each, emit, json_option
from tfenv.model import Cell


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
    from tfenv import pipeline
    from tfenv.build import Built, Host, stage_for_hand
    from tfenv.console import Console
    from tfenv.store import default_store
    from tfenv.workspace import here

    workspace = here()
    host = Host(default_store(os.environ), Console(), os.environ)

    def told(built: Built) -> dict[str, object]:
        return {
            "cell": built.cell,
            "manifest": built.digest.manifest,
            "config": built.digest.config,
            "archive": str(built.archive),
            "compressed_bytes": built.digest.compressed_bytes,
            "seconds": dict(built.seconds),
            "reused": built.reused,
            "log": str(built.log) if built.log else None,
        }

    def stage_one(cell: Cell) -> int:
        import shlex

        assert stage is not None
        argv = stage_for_hand(cell, workspace.lock(cell), host, stage)
        emit({"cell": cell.name, "argv": argv}, as_json=as_json, text=shlex.join(argv))
        return 0

    def twice(cell: Cell) -> int:
        first, second = pipeline.build_twice(workspace, cell, host)
        made = pipeline.build_cell(workspace, cell, host)
        seconds = [dict(b.seconds) for b in (first, second)]
        data = {**told(second), "reproducible": True, "likeness": made.likeness, "seconds": seconds}
        text = f"{cell.name}: two builds without cache gave {second.digest.manifest}; the engine keeps it"
        emit(data, as_json=as_json, text=text)
        if record:
            pipeline.record(workspace, cell, second)
        return 0

    def one(cell: Cell) -> int:
        made = pipeline.build_cell(workspace, cell, host, no_cache=no_cache)
        if record:
            pipeline.record(workspace, cell, made.built)
        data = {**told(made.built), "tags": list(made.tags), "likeness": made.likeness}
        what = "already built" if made.built.reused else "built"
        size = made.built.digest.compressed_bytes / 1e9
        text = f"{cell.name}: {what}, {size:.2f} GB, {made.built.digest.manifest} ({made.likeness})\n"
        emit(data, as_json=as_json, text=text + "\n".join(f"  {tag}" for tag in made.tags))
        return 0

    action = stage_one if stage else twice if check_reproducible else one
    chosen = workspace.cells(cells, every=every)
    return each(chosen, lambda c: c.name, action, host.console, as_json=as_json)
