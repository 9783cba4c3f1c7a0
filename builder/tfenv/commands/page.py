"""``tfenv page``"""

from __future__ import annotations

from pathlib import Path

import click

from tfenv.commands._common import emit, json_option


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
    from tfenv.files import write_all
    from tfenv.page import files
    from tfenv.workspace import here

    workspace = here()
    made = files.texts(files.page_of(workspace, facts.compiled), workspace.matrix_path.parent, output)
    changed = files.drift(made)
    if check:
        files.raise_drift(changed)
    for path in changed:
        write_all(path.parent, {path.name: made[path]})
    emit(
        {"files": [str(path) for path in made], "changed": [str(path) for path in changed]},
        as_json=as_json,
        text="\n".join(f"{path}: {'written' if path in changed else 'current'}" for path in made),
    )
    return 0
