"""``tfenv init``"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from tfenv.commands._common import emit, json_option


@click.command("init")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--from",
    "cells",
    metavar="CELL",
    multiple=True,
    help="A cell to begin with; may be given again. Default: latest.",
)
@click.option(
    "--repository", default="tfenv", show_default=True, help="Image repository: images are REPOSITORY:NAME."
)
@json_option
def command(folder: Path, cells: tuple[str, ...], repository: str, as_json: bool) -> int:
    """Start a team's own repository: matrix.yaml, images/, a CI workflow, README and .gitignore.

    Locks and digests of the cells come with tfenv, so that what was verified of them goes on holding.
    """
    from tfenv.cells import resolve
    from tfenv.console import Console
    from tfenv.lock import host_resolvers
    from tfenv.team import start
    from tfenv.workspace import FILE_NAME, Workspace

    console = Console()
    own = start.catalogue()
    chosen = tuple(dict.fromkeys(resolve(own, name) for name in cells or ("latest",)))
    written, kept = start.start(folder, chosen, repository, os.environ)
    workspace = Workspace(folder, {**os.environ, "TFENV_MATRIX": str(folder / FILE_NAME)})
    written += [f"images/{name}" for name in start.lock_rows(workspace, chosen, host_resolvers(os.environ))]
    for name in kept:
        console.note(f"{name} was there and stays as it is")
    names = [cell.name for cell in chosen]
    text = "\n".join(f"  {name}" for name in written)
    change = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    emit(
        {"folder": str(folder), "cells": names, "written": written, "kept": kept},
        as_json=as_json,
        text=f"{folder}: a team's repository\n{text}\n"
        f"next: {change}tfenv new NAME --from {names[0]} -r requirements.in",
    )
    return 0
