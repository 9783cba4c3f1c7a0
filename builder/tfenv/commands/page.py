"""``tfenv page``"""

from __future__ import annotations

from pathlib import Path

import click

from tfenv.commands._common import json_option
from tfenv.commands._pages import write_or_check


@click.command("page")
@click.option("--check", is_flag=True, help="Write nothing; fail if a file is not current.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write there, and leave README.md alone.  [default: docs/ beside matrix.yaml]",
)
@json_option
def command(check: bool, output: Path | None, as_json: bool) -> int:
    """Write the matrix page: what runs on which GPU and driver.

    It is docs/matrix.html, and a table between the markers in README.md, or in docs/matrix.md where
    there are none.
    """
    from tfenv import facts
    from tfenv.page import files
    from tfenv.workspace import here

    workspace = here()
    made = files.texts(files.page_of(workspace, facts.compiled), workspace.matrix_path.parent, output)
    write_or_check(
        made,
        check=check,
        as_json=as_json,
        what="the matrix page is not what the matrix, the facts, the locks and the reports give",
        command="tfenv page",
    )
    return 0
