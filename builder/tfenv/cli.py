"""The ``tfenv`` command: finds the command typed, and turns errors into messages and exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click

from tfenv import __version__
from tfenv.errors import EXIT_FAILED, EXIT_USAGE, TfenvError, UsageError

# name -> one line of help. The module tfenv.commands.<name> holds `command`; --help imports none.
COMMANDS = {
    "list": "Show the cells of matrix.yaml, their aliases and state.",
    "explain": "Say whether a combination or a file runs and why not, or the cause of a pasted error.",
    "lock": "Pin all inputs of cells by hash.",
    "render": "Write the Dockerfiles from the matrix and the locks.",
    "build": "Build cells to reproducible images and tag them.",
    "verify": "Run the verification suite in built images.",
    "up": "Lock, render, build and verify one cell.",
    "run": "Run a command in a cell's image.",
    "init": "Start a team's own repository.",
    "new": "Add a team's environment: a cell, and the team's own packages on top.",
    "export": "Write a cell for those without Docker: pip, conda, Apptainer, devcontainer, Compose.",
    "bisect": "Find the smallest change of packages that makes a command fail.",
    "doctor": "Say why TensorFlow does not see a GPU on this host, and which cells run.",
    "facts": "Read, check and show what TensorFlow's own wheels say of themselves.",
    "outdated": "Say what has changed in the world since cells were locked.",
    "page": "Write the matrix page: what runs on which GPU and driver.",
    "troubleshooting": "Write the troubleshooting pages from the rules of tfenv explain.",
    "diff": "Say how two cells, images, archives or snapshots differ, what matters first.",
    "history": "Show what the names of images meant, when and why.",
    "rollback": "Take an alias back to the last verified image that it meant.",
    "sbom": "List all that is in an image, as CycloneDX or SPDX.",
    "licenses": "List the licences of all that is in an image.",
    "archive": "Put cells with all their inputs into a folder or registry; rehash one.",
    "rebuild": "Build a snapshot again and say whether it is the same, and why not.",
    "gc": "Free the store of archives and inputs.",
    "stress": "Load the GPUs of a host: are results right, heat and clocks in order?",
    "bench": "Measure training in a cell and say what to switch on.",
    "schema": "Print or write the JSON Schema of matrix.yaml.",
}
# Other spellings that users type.
ALIASES = {"licences": "licenses"}
EPILOG = "Exit codes: 0 done or verified, 1 failed, 2 usage, 3 could not be verified, 4 host not ready."


_CLEANING_SECONDS = 10


class _Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tfenv.commands.{cmd_name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = [ALIASES.get(args[0], args[0]), *args[1:]] if args else args
        if args and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=_Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="tfenv")
def tfenv() -> None:
    """TensorFlow GPU environments in containers that can be trusted, pinned and rebuilt."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        argv: arguments without the program's name; the process's own by default.
    """
    sys.exit(run(argv))


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    _open_streams()
    try:
        with stoppable() as stopped:
            return _run(argv, stopped)
    except BrokenPipeError:
        # The reader of stdout is gone (`| head`): no more output, also not at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED


def _open_streams() -> None:
    """Give a process that was started with closed streams, as by some daemons, those of nowhere.

    Otherwise the next file that is opened would be stdout to every program that is started.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def _run(argv: Sequence[str] | None, came: list[int]) -> int:
    wish: dict[str, bool] = {}  # see commands._common.json_flag
    try:
        result: Any = tfenv.main(args=argv, prog_name="tfenv", standalone_mode=False, obj=wish)
    except click.exceptions.Abort:
        said = "interrupted: nothing was left half-written; type the command again to go on"
        with contextlib.suppress(OSError):  # the terminal may be gone
            print(said, file=sys.stderr)
        return 128 + (came[0] if came else signal.SIGINT)
    except click.ClickException as error:
        error.show(sys.stderr)
        if "--json" in (sys.argv[1:] if argv is None else argv):  # not all options have been read
            from tfenv.commands._common import emit_error

            emit_error(UsageError(error.format_message(), remedy="see `tfenv --help`"))
        return EXIT_USAGE
    except BrokenPipeError:
        raise
    except (TfenvError, OSError) as error:
        if came and isinstance(error, OSError):
            return 128 + came[0]  # told to end by a terminal that is gone
        from tfenv.commands._common import tell
        from tfenv.console import Console

        return tell(error, Console(), as_json=wish.get("json", False))
    except Exception as error:
        from tfenv.commands._common import tell, unforeseen
        from tfenv.console import Console

        return tell(unforeseen(error), Console(), as_json=wish.get("json", False))
    return result if isinstance(result, int) else 0


@contextlib.contextmanager
def stoppable() -> Iterator[list[int]]:
    """A kill, or a terminal that is closed, gets to clean up like Ctrl-C; gives the signals that came."""
    came: list[int] = []
    began = 0.0

    def stop(number: int, _frame: object) -> None:
        nonlocal began
        came.append(number)
        # Another one would break off the cleaning up, which an impatient user gets after a while only.
        if len(came) == 1 or (number == signal.SIGINT and time.monotonic() - began > _CLEANING_SECONDS):
            began = time.monotonic()
            raise KeyboardInterrupt

    # One that is ignored stays so: that is what `nohup` is for.
    main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    wanted = [n for n in numbers if main and signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in wanted}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
