"""``tfenv diff``"""

from __future__ import annotations

import os

import click

from tfenv.commands._common import emit, json_option
from tfenv.errors import EXIT_FAILED, EXIT_USAGE, TfenvError


class NoAnswerError(TfenvError):
    """The sides could not be compared. As with diff(1) that is 2, since 1 says that they differ."""

    exit_code = EXIT_USAGE


@click.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="For a terminal, a program or a pull request.",
)
@click.option("--full", is_flag=True, help="List everything, every file too.")
@json_option
def command(before: str, after: str, form: str, full: bool, as_json: bool) -> int:
    """Say how two environments differ, what matters first.

    A and B are a cell (its lock; CELL@main is the lock of a commit), an image of the engine (repository:tag,
    also a foreign one), an archive of an image, or the folder of a snapshot or image layout; FOLDER@NAME
    picks one of several.

    Exit codes: 0 the same in all that is known of both, 1 they differ, 2 they could not be compared.
    """
    from tfenv.console import Console
    from tfenv.diff import markdown, sections, sides, telling
    from tfenv.workspace import here_or_checkout

    as_json = as_json or form == "json"
    workspace = here_or_checkout(Console().note)
    room = sides.here(os.environ, workspace)
    try:
        one, other = (sides.open_side(name, room) for name in (before, after))
        told = sections.compare(one, other)
    except TfenvError as error:
        if error.exit_code == EXIT_FAILED:
            raise NoAnswerError(error.message, remedy=error.remedy) from error
        raise
    text = markdown.to_markdown(told) if form == "markdown" else telling.to_text(told, full=full)
    emit(telling.to_json(told) if as_json else None, as_json=as_json, text=text.rstrip("\n"))
    return EXIT_FAILED if told.differs else 0
