"""``tfenv gc``"""

from __future__ import annotations

import os
import shutil
import time

import click

from tfenv.commands._common import emit, json_option


@click.command("gc")
@click.option("--everything", is_flag=True, help="Also what the committed locks need.")
@click.option("--dry-run", is_flag=True, help="Only say how much.")
@json_option
def command(everything: bool, dry_run: bool, as_json: bool) -> None:
    """Free the store: keeps what the locks of this folder's matrix.yaml name, and their archives.

    Images that killed builds have left in the engine go too; nothing else in the engine is touched. Of a
    bisection stays what was learnt, until nobody has gone on with it for 30 days.
    """
    from tfenv import freeing, images, render
    from tfenv.bisect import freeing as bisections
    from tfenv.engine import probe, run_command
    from tfenv.errors import MatrixError
    from tfenv.files import own_sizes
    from tfenv.inputs import Inputs
    from tfenv.store import default_store
    from tfenv.team import flow
    from tfenv.workspace import here

    workspace, store = here(), default_store(os.environ)
    keep: set[str] = set()
    if not everything:
        try:
            cells = workspace.matrix.cells
        except MatrixError as error:
            raise MatrixError(
                f"{error.message}\nwithout a matrix nothing says what to keep",
                remedy="type it in a folder with matrix.yaml, or: tfenv gc --everything",
            ) from error
        for cell in cells:
            if lock := workspace.find_lock(cell):
                keep |= {package.sha256 for package in lock.debian} | {w.sha256 for w in lock.wheels}
                record = store.read_record(Inputs(cell, lock, True, render.render(cell, lock)).hash)
                if record and isinstance(record.get("archive"), str):
                    keep.add(record["archive"])
        for own in workspace.matrix.environments:
            if inputs := flow.uncommitted(workspace, own):
                keep |= {p.sha256 for p in inputs.own.debian} | {w.sha256 for w in inputs.own.wheels}
                record = store.read_record(inputs.hash)
                if record and isinstance(record.get("archive"), str):
                    keep.add(record["archive"])
        keep |= workspace.memo_keys()
    with store.lock():
        store.require_own()
        # What failed builds left, and snapshots on their way from and to registries.
        passing = [store.root / "stage", store.root / "snapshots"]
        sizes = [size for folder in passing for size in own_sizes(folder)]
        if not dry_run:
            for folder in passing:
                shutil.rmtree(folder, ignore_errors=True)
            if client := probe(run_command, os.environ).client:
                images.forget_unfinished(client)
        bisected = bisections.free(store.root / "bisect", now=time.time(), dry_run=dry_run)
        freed = freeing.free(store, keep, dry_run=dry_run)
    size = freed.bytes + bisected.bytes + sum(sizes)
    files = freed.files + bisected.files + len(sizes)
    told = {"bytes": size, "files": files, "dry_run": dry_run, "store": str(store.root)}
    verb = "would free" if dry_run else "freed"
    emit(
        told,
        as_json=as_json,
        text=f"{verb} {size / 1e9:.2f} GB in {files} files of {store.root}",
    )
