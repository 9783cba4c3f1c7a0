"""``tfenv bisect``"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from tfenv.commands._common import emit, json_option
from tfenv.errors import EXIT_OK, EXIT_UNVERIFIED

_LATEST = "latest"


class _WithCommand(click.Command):
    """Keeps apart what stands before and after ``--``, which click does not tell."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["command"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.command("bisect", cls=_WithCommand, options_metavar="[OPTIONS]")
@click.argument("before", nargs=-1, metavar="[CELL] -- COMMAND [ARG]...")
@click.option("--good", metavar="A", help="Where it works: a date, a cell, a lock or a requirements file.")
@click.option("--bad", metavar="B", help="Where it fails: one of these, or `today`.")
@click.option(
    "-r",
    "--requirements",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What is resolved as of a date, instead of a CELL's.",
)
@click.option(
    "--in",
    "where",
    type=click.Choice(["venv", "image"]),
    default="venv",
    show_default=True,
    help="Environments on this host, or in the image of CELL.",
)
@click.option("--python", metavar="X.Y|PATH", help="The Python of a venv, instead of the cell's.")
@click.option("--cuda", is_flag=True, help="In a venv: with NVIDIA's wheels, too.")
@click.option("--gpus", is_flag=True, help="In an image: with the host's GPUs.")
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, help="Runs; one failure is a failure.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds; longer is a failure.")
@click.option("--resume", metavar="ID", is_flag=False, flag_value=_LATEST, help="Go on with the last, or ID.")
@click.option("--fresh", is_flag=True, help="Forget what is known of this question.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, **options: Any) -> int:
    """Find the smallest change of packages that makes COMMAND fail.

    \b
    tfenv bisect 2.15-cu12 --good 2024-03-01 --bad today -- python -c "import tensorflow"
    tfenv bisect -r requirements.in --good 2024-03-01 --bad 2024-06-01 -- pytest -x
    tfenv bisect --good old/requirements.lock --bad freeze.txt -- python train.py --steps 1

    COMMAND tells by its exit code, as with `git bisect run`: 0 good, 125 cannot tell, any other below 126
    bad; a crash is bad, too. Days are halved first, then the packages that differ, then the versions of the
    one that is left. All answers are kept: after an interruption type the same again, or --resume.

    Exit codes: 0 found, 1 there is nothing to find, 3 narrowed down, but not to one change.
    """
    from tfenv.bisect.asking import Options, going_on, new_question
    from tfenv.bisect.running import find
    from tfenv.build import Host
    from tfenv.console import Console
    from tfenv.store import default_store
    from tfenv.workspace import here_or_checkout

    console = Console()
    store = default_store(os.environ)
    root = store.root / "bisect"
    asked = Options(command=ctx.meta["command"], **options)
    if asked.resume:
        question, folder = going_on(root, asked)
    else:
        question = new_question(
            asked, lambda: here_or_checkout(console.note), Host(store, console, os.environ)
        )
        folder = root / question.name
    result, text, data = find(question, folder, store, os.environ, console.note, fresh=asked.fresh)
    emit(data, as_json=as_json, text=text)
    return EXIT_OK if result.exact else EXIT_UNVERIFIED
