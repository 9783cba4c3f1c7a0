"""What the commands share: options, printing, and going on after a cell that failed."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tfenv.console import Console
from tfenv.errors import NotReadyError, TfenvError, UsageError
from tfenv.given_gpus import WORDS, count, parse
from tfenv.progress import clean

if TYPE_CHECKING:
    from tfenv.model import Cell, Environment

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


def json_flag(help: str) -> Callable[[_F], _F]:
    """``--json``: one JSON document a line on stdout, also for an error.

    It is noted in click's ``ctx.obj``, where ``cli`` sees it when a command has failed.
    """

    def note(ctx: click.Context, _option: click.Parameter, value: bool) -> bool:
        ctx.ensure_object(dict)["json"] = value
        return value

    return click.option("--json", "as_json", is_flag=True, callback=note, help=help)


json_option = json_flag("Print JSON on stdout.")


def cells_arguments(function: _F) -> _F:
    """``CELLS...`` or ``--all``."""
    function = click.option("--all", "every", is_flag=True, help="All cells of the matrix.")(function)
    return click.argument("cells", nargs=-1, metavar="[CELL]...")(function)


def gpus_option(function: _F) -> _F:
    """``--gpus``: what runs gets of the host's GPUs. The command is given what ``given_gpus.parse`` says."""

    def read(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
        chosen = parse(value)
        if chosen is None:
            raise click.BadParameter(f"{value!r} is none of {WORDS}.")
        return chosen

    return click.option(
        "--gpus",
        default="auto",
        show_default=True,
        callback=read,
        metavar="auto|all|none|N|A,B",
        help="GPUs that the image gets: auto, all, none, a number as 2, or a list as 0,1 (device=0 for one).",
    )(function)


def not_with_lines(lines: object, gpus: str, expect_gpus: int | None = None) -> None:
    """What was printed elsewhere has had its GPUs.

    Raises:
        UsageError: ``--lines`` is given, and GPUs are asked for.
    """
    if lines and (gpus != "auto" or expect_gpus is not None):
        raise UsageError(
            "the lines are printed already",
            remedy="give --gpus and --expect-gpus to what prints them, where it runs",
        )


def require_digest(digest: str, taken: bool, by: str) -> None:
    """What ``--digest`` says is a digest, and is not passed over.

    Args:
        taken: whether anything takes it. by: the options that do.

    Raises:
        UsageError: it is not.
    """
    from tfenv.verify_elsewhere import whole_digest

    if digest and whole_digest(digest) and not taken:
        raise UsageError(
            f"--digest is for {by}: an image that is run here tells its own",
            remedy=f"leave it out, or give {by}",
        )


def require_expected(gpus: str, expect_gpus: int | None) -> None:
    """GPUs that are given, and GPUs that are expected, can be as many.

    Raises:
        UsageError: they cannot.
    """
    given = count(gpus)
    if expect_gpus is not None and given not in (None, expect_gpus):
        raise UsageError(
            f"--gpus {gpus} gives {given}, and --expect-gpus wants {expect_gpus}",
            remedy=f"type it without --gpus {gpus}, or with --expect-gpus {given}",
        )


def emit(data: object, *, as_json: bool, text: str = "") -> None:
    """Print ``data`` as one line of JSON, or ``text`` for people, on stdout."""
    if as_json:
        click.echo(json.dumps(data, sort_keys=True))
    elif text:
        click.echo(clean(text))  # an image or a mirror may have a say in it


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
        except BrokenPipeError:
            raise  # nobody reads any more
        except (TfenvError, OSError) as error:
            codes.append(tell(error, console, as_json=as_json, cell=name(item)))
        except Exception as error:
            codes.append(tell(unforeseen(error), console, as_json=as_json, cell=name(item)))
    return worst(codes)


def tell(error: TfenvError | OSError, console: Console, *, as_json: bool, **about: str) -> int:
    """Say an error on stderr, and as data on stdout where that is wanted; return its exit code.

    Args:
        about: what the data also holds, e.g. the cell.
    """
    if isinstance(error, OSError):
        error = of_system(error)
    console.error(error)
    if as_json:
        with contextlib.suppress(OSError):  # stdout itself may be what is full
            emit_error(error, **about)
    return error.exit_code


def emit_error(error: TfenvError, **about: str) -> None:
    """Print an error as one line of JSON on stdout."""
    told = {"message": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
    emit({**about, "error": told}, as_json=True)


_REMEDIES = {
    errno.ENOSPC: "free some: `tfenv gc`, `docker image prune`, `docker builder prune`",
    errno.EDQUOT: "free some: `tfenv gc`; `quota` says how much you may use",
    errno.EACCES: "see whose it is with `ls -ld`; what was made with sudo stays root's",
    errno.EPERM: "see whose it is with `ls -ld`; what was made with sudo stays root's",
    errno.EROFS: "it is on a file system that may only be read: set TFENV_CACHE, or work in another folder",
    errno.EMFILE: "allow more open files: `ulimit -n 4096`",
}


def of_system(error: OSError) -> NotReadyError:
    """The system's error as the project's."""
    what = f"{error.strerror}: {error.filename}" if error.filename and error.strerror else str(error)
    remedy = _REMEDIES.get(error.errno or 0, "see to that, then type the command again")
    return NotReadyError(what or type(error).__name__, remedy=remedy)


def unforeseen(error: Exception) -> TfenvError:
    """A fault of tfenv's own: one line for the user, the traceback in a file for the report."""
    import os
    import tempfile
    import traceback

    from tfenv.index import redact

    try:
        handle, name = tempfile.mkstemp(prefix="tfenv-traceback-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(redact("".join(traceback.format_exception(error))))
        how = f"please report it with the file {name}"
    except OSError as full:
        how = f"please report it; the traceback could not be kept: {full.strerror}"
    said = redact(str(error).splitlines()[0] if str(error) else "")
    return TfenvError(
        f"tfenv did not expect this: {type(error).__name__}: {said}",
        remedy=how,
    )


def worst(codes: Iterable[int]) -> int:
    """The exit code that says most: 1, 4, 2, 3, then 0."""
    given = set(codes)
    return next((code for code in (1, 4, 2, 3) if code in given), 0)


def of_two_kinds(cells: Iterable[Cell]) -> tuple[tuple[Cell, ...], tuple[Environment, ...]]:
    """The rows' cells, and the team's environments."""
    from tfenv.model import Environment

    chosen = tuple(cells)
    return (
        tuple(cell for cell in chosen if not isinstance(cell, Environment)),
        tuple(cell for cell in chosen if isinstance(cell, Environment)),
    )
