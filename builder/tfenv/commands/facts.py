"""``tfenv facts``"""

from __future__ import annotations

from pathlib import Path

import click

from tfenv.commands._common import emit, json_option


@click.group("facts", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Read, check and show what TensorFlow's own wheels say of themselves.

    Alone, it shows a line for every release that is known.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show, release=None, as_json=as_json)
    return 0


@command.command("show")
@click.argument("release", required=False)
@json_option
def show(release: str | None, as_json: bool) -> int:
    """Print what is known of RELEASE, or of all."""
    from tfenv.audit.show import everything, one

    data, text = one(release) if release else everything()
    emit(data, as_json=as_json, text=text)
    return 0


@command.command("audit")
@click.argument("releases", nargs=-1, metavar="[RELEASE]...")
@click.option("--deep", is_flag=True, help="Also read the libraries of one wheel of each release.")
@click.option("--check", is_flag=True, help="Read no wheel, write nothing; fail if the index has others.")
@click.option("--whole", is_flag=True, help="Read whole wheels where a server sends no parts of files.")
@click.option(
    "--installed",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Read this site-packages folder, or unpacked image, instead of an index; write nothing.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The facts file. The wheels' own audit goes to wheels/ beside it.",
)
@json_option
def audit(
    releases: tuple[str, ...],
    deep: bool,
    check: bool,
    whole: bool,
    installed: Path | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Read the facts from the wheels of your package index.

    A few megabytes of each wheel are read. What has been read is kept by the wheel's hash: a second run
    reads nothing and changes nothing, an interrupted one goes on.
    """
    from tfenv.audit import run
    from tfenv.resources import facts_dir

    if installed:
        data, text = run.of_folder(installed, libraries=deep)
        emit(data, as_json=as_json, text=text)
        return 0
    file = output or facts_dir() / "tensorflow.json"
    if check:
        data, text, code = run.compare(file, releases)
        emit(data, as_json=as_json, text=text)
        return code
    data, text, code = run.audit(file, releases, libraries=deep, whole=whole)
    emit(data, as_json=as_json, text=text)
    return code
