"""``tfenv run``"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfenv.commands._common import emit, json_flag

if TYPE_CHECKING:
    from tfenv.console import Console

#: Exit codes of a command that somebody stopped: Ctrl-C, SIGPIPE of a reader that has enough, docker stop.
_STOPPED = (130, 141, 143)


def _gpus(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    """As every ``--gpus``, else what docker itself takes."""
    from tfenv.given_gpus import DOCKERS, WORDS, dockers, parse

    chosen = parse(value) or dockers(value)
    if chosen is None:
        raise click.BadParameter(f"{value!r} is none of {WORDS}; nor {DOCKERS}.")
    return chosen


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.argument("cell", metavar="CELL")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND [ARG]...]")
@click.option(
    "--gpus",
    default="auto",
    show_default=True,
    callback=_gpus,
    metavar="auto|all|none|N|A,B|VALUE",
    help="As of tfenv verify, or a value of docker's own, as all,capabilities=utility.",
)
@click.option("--print", "only_print", is_flag=True, help="Show the docker line, do not run it.")
@click.option("--read-only", is_flag=True, help="With a read-only root file system.")
@click.option("--no-workdir", is_flag=True, help="Do not mount the current folder at /workspace.")
@click.option("-e", "--env", "environment", multiple=True, metavar="NAME[=VALUE]", help="As docker's -e.")
@click.option("-v", "--volume", "mounts", multiple=True, help="As docker's -v.")
@click.option("-p", "--publish", "ports", multiple=True, help="As docker's -p.")
@click.option("--no-explain", is_flag=True, help="Say nothing of memory, nor why the command failed.")
@json_flag("Print the docker line as JSON, do not run it.")
def command(
    cell: str,
    arguments: tuple[str, ...],
    gpus: str,
    only_print: bool,
    read_only: bool,
    no_workdir: bool,
    environment: tuple[str, ...],
    mounts: tuple[str, ...],
    ports: tuple[str, ...],
    no_explain: bool,
    as_json: bool,
) -> int:
    """Run a command in a cell's image: GPUs, shared memory, kernel cache, and this folder at /workspace.

    Options come before CELL; what follows it is the command's. Where a command fails, the cause is told if it
    is known (see tfenv explain); its output and its exit code stay what they are.
    """
    from tfenv import runline
    from tfenv.console import Console
    from tfenv.engine import check, probe, run_command
    from tfenv.meant import image_meant
    from tfenv.store import default_store
    from tfenv.workspace import here_or_checkout

    console = Console()
    workspace = here_or_checkout(console.note)
    named = image_meant(cell, workspace, default_store(os.environ).root)
    named.tell(console.note)
    engine = probe(run_command, os.environ)
    image, docker = named.names[0], engine.client or "docker"
    only_print = only_print or as_json
    if not only_print:
        check(engine)
        image = named.image_name(docker, run_command)
    here_gpu = runline.gpu_here(lambda argv: run_command(argv).returncode == 0)
    wanted, note = runline.choose_gpus(gpus, here_gpu)
    if note:
        console.note(note)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    argv = runline.run_argv(
        image,
        docker=docker,
        gpus=wanted,
        tty=terminal,
        interactive=not sys.stdin.isatty(),
        user=(os.getuid(), os.getgid()),
        rootless=engine.rootless,
        read_only=read_only,
        workdir=None if no_workdir else Path.cwd(),
        mounts=mounts,
        ports=ports,
        environment=environment,
        command=arguments,
    )
    if not only_print and (no_explain or not arguments):
        os.execvp(docker, argv)  # the container's own signals, terminal and exit code
    if not only_print:
        if wanted:
            _advise(console, wanted, environment)
        return _run(argv, terminal=terminal)
    emit({"cell": named.cell.name, "argv": argv}, as_json=as_json, text=runline.quoted(argv))
    return 0


def _advise(console: Console, gpus: str, environment: tuple[str, ...]) -> None:
    from tfenv.engine import run_command
    from tfenv.knowledge import memory

    held = memory.held(run_command(memory.QUERY, timeout=5).stdout)
    meminfo = Path("/proc/meminfo")
    left = (
        memory.available(meminfo.read_text(encoding="ascii", errors="replace")) if meminfo.exists() else None
    )
    for note in memory.advice(memory.wanted(held, gpus), environment, left):
        console.note(f"memory: {note}")


def _run(argv: list[str], *, terminal: bool) -> int:
    """Run the command; after a failure say its cause, where a rule knows it, and end as it ended."""
    from tfenv.knowledge.watching import watch

    ended = watch(argv, terminal=terminal)
    if ended.code not in (0, *_STOPPED):
        from tfenv.knowledge import explain
        from tfenv.knowledge.reading import decode
        from tfenv.knowledge.telling import in_short

        said = f"{decode(ended.said)}\nexited with code {ended.code}"
        if cause := in_short(explain(said)):
            with contextlib.suppress(OSError):  # stderr may be gone
                print(f"\n{cause}", file=sys.stderr)
    return ended.code
