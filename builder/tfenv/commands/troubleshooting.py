"""``tfenv troubleshooting``"""

from __future__ import annotations

from pathlib import Path

import click

from tfenv.commands._common import json_option
from tfenv.commands._pages import write_or_check


@click.command("troubleshooting")
@click.option("--check", is_flag=True, help="Write nothing; fail if a file is not current.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write there.  [default: docs/ beside matrix.yaml]",
)
@json_option
def command(check: bool, output: Path | None, as_json: bool) -> int:
    """Write the troubleshooting pages from the rules that `tfenv explain` has.

    troubleshooting.html is one file that is searched by the words of an error, without a network;
    troubleshooting.md says the same.
    """
    from tfenv.knowledge import library
    from tfenv.knowledge.pages import texts
    from tfenv.workspace import here

    folder = output or here().matrix_path.parent / "docs"
    made = {folder / name: text for name, text in texts(library()).items()}
    write_or_check(
        made,
        check=check,
        as_json=as_json,
        what="the troubleshooting pages are not what the rules give",
        command="tfenv troubleshooting",
    )
    return 0
