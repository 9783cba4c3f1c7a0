"""``tfenv run``"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tfenv.commands._common import emit, json_flag


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.argument("cell", metavar="CELL")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND [ARG]...]")
@click.option("--gpus", default="auto", show_default=True, help="auto, none, or a value of docker's --gpus.")
@click.option("--print", "only_print", is_flag=True, help="Show the docker line, do not run it.")
@click.option("--read-only", is_flag=True, help="With a read-only root file system.")
@click.option("--no-workdir", is_flag=True, help="Do not mount the current folder at /workspace.")
@click.option("-e", "--env", "environment", multiple=True, metavar="NAME[=VALUE]", help="As docker's -e.")
@click.option("-v", "--volume", "mounts", multiple=True, help="As docker's -v.")
@click.option("-p", "--publish", "ports", multiple=True, help="As docker's -p.")
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
    as_json: bool,
) -> int:
    """Run a command in a cell's image: GPUs, shared memory, kernel cache, and this folder at /workspace.

    Options come before CELL; what follows it is the command's.
    """
    from tfenv import runline
    from tfenv.console import Console
    from tfenv.engine import check, probe, run_command
    from tfenv.history.moving import held_name
    from tfenv.store import default_store
    from tfenv.workspace import here_or_checkout

    console = Console()
    workspace = here_or_checkout(console.note)
    (chosen,) = workspace.cells((cell,))
    engine = probe(run_command, os.environ)
    images, docker = workspace.image_names(chosen), engine.client or "docker"
    if held := held_name(cell, workspace.matrix.repository, default_store(os.environ).root):
        console.note(f"{held.name} is held back at {held.after[:19]} since {held.at[:10]}")
        images = (held.name, *images)
    image = images[0]
    only_print = only_print or as_json
    if not only_print:
        check(engine)
        image = runline.first_image(images, chosen.name, docker, run_command)
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
    if not only_print:
        os.execvp(docker, argv)  # the container's own signals, terminal and exit code
    emit({"cell": chosen.name, "argv": argv}, as_json=as_json, text=runline.quoted(argv))
    return 0
