"""``tfenv export``"""

from __future__ import annotations

from pathlib import Path

import click

from tfenv.commands._common import emit, json_option

# The keys of tfenv.export.FORMATS, which is imported only when one is asked for.
NAMES = ("pip", "conda", "apptainer", "devcontainer", "compose")


@click.command("export")
@click.argument("cell", metavar="CELL")
@click.option("--format", "form", type=click.Choice(NAMES), required=True, help="What to write.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; else it goes to stdout.",
)
@json_option
def command(cell: str, form: str, output: Path | None, as_json: bool) -> int:
    """Write a cell or an environment for those without Docker, or with tools of their own.

    pip: requirements.txt with hashes; conda: environment.yml; apptainer: a definition file; devcontainer:
    devcontainer.json; compose: compose.yaml.
    """
    from tfenv import digest
    from tfenv.console import Console
    from tfenv.export import FORMATS, Subject
    from tfenv.files import write_all
    from tfenv.workspace import here_or_checkout

    console = Console()
    workspace = here_or_checkout(console.note)
    (chosen,) = workspace.cells((cell,))
    recorded = digest.read(workspace.folder(chosen))
    subject = Subject(
        cell=chosen,
        lock=workspace.lock(chosen),
        image=workspace.tags(chosen)[0],
        manifest=recorded.manifest if recorded else "",
    )
    text = FORMATS[form].make(subject)
    if form in ("pip", "conda") and subject.lock.cuda_from == "base":
        console.warn(
            f"{chosen.name} has CUDA from its base image: the host has to have it, no wheel brings it"
        )
    if output is not None:
        write_all(output.parent, {output.name: text})
        emit({"cell": chosen.name, "format": form, "output": str(output)}, as_json=as_json, text=str(output))
    elif as_json:
        emit({"cell": chosen.name, "format": form, "text": text}, as_json=True)
    else:
        click.echo(text, nl=False)
    return 0
