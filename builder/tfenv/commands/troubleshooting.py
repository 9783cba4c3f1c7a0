"""``tfenv troubleshooting``"""

from __future__ import annotations

from pathlib import Path

import click

from tfenv.commands._common import emit, json_option


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
    from tfenv.errors import DriftError
    from tfenv.files import write_all
    from tfenv.knowledge import library
    from tfenv.knowledge.pages import texts
    from tfenv.page.files import drift
    from tfenv.workspace import here

    folder = output or here().matrix_path.parent / "docs"
    made = {folder / name: text for name, text in texts(library()).items()}
    changed = drift(made)
    if check and changed:
        raise DriftError(
            "the troubleshooting pages are not what the rules give:\n  " + "\n  ".join(map(str, changed)),
            remedy="type: tfenv troubleshooting   and commit the result",
        )
    for path in changed:
        write_all(path.parent, {path.name: made[path]})
    emit(
        {"files": [str(path) for path in made], "changed": [str(path) for path in changed]},
        as_json=as_json,
        text="\n".join(f"{path}: {'written' if path in changed else 'current'}" for path in made),
    )
    return 0
