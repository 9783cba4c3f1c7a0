"""What the commands share: options, printing, and going on after a cell that failed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from tfenv.console import Console
from tfenv.errors import TfenvError

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


def json_option(function: _F) -> _F:
    """``--json``: one JSON document a line on stdout."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")(function)


def cells_arguments(function: _F) -> _F:
    """``CELLS...`` or ``--all``."""
    function = click.option("--all", "every", is_flag=True, help="All cells of the matrix.")(function)
    return click.argument("cells", nargs=-1, metavar="[CELL]...")(function)


def emit(data: object, *, as_json: bool, text: str = "") -> None:
    """Print ``data`` as one line of JSON, or ``text`` for people, on stdout."""
    if as_json:
        click.echo(json.dumps(data, sort_keys=True))
    elif text:
        click.echo(text)


def each(
    items: Iterable[_T],
    name: Callable[[_T], str],
    action: Callable[[_T], int],
    console: Console,
    *,
    as_json: bool,
) -> int:
    """Do ``action`` for every item, going on after one that fails; return the worst exit code.

    The order of badness is that of the codes' meaning: failed, not ready, usage, unverified.
    """
    codes = []
    for item in items:
        try:
            codes.append(action(item))
        except TfenvError as error:
            console.error(error)
            codes.append(error.exit_code)
            if as_json:
                told = {"message": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
                emit({"cell": name(item), "error": told}, as_json=True)
    return worst(codes)


def worst(codes: Iterable[int]) -> int:
    """The exit code that says most: 1, 4, 2, 3, then 0."""
    given = set(codes)
    return next((code for code in (1, 4, 2, 3) if code in given), 0)
