"""Modules that are commands by themselves, for hosts without ``tfenv``: signals, errors, exit codes.

Only the standard library and the project's errors are used here.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from tfenv.errors import EXIT_FAILED, EXIT_NOT_READY, TfenvError


def run_alone(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> NoReturn:
    """Run ``main`` and exit with what it returns; a kill, or a terminal that is closed, lets it clean up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as by nohup
            signal.signal(number, _stop)
    sys.exit(_code(main, argv))


def _code(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    try:
        return main(argv)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of stdout is gone: no more output, also not at the interpreter's exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_FAILED
    except TfenvError as error:
        print(f"error: {error.message}\n  -> {error.remedy}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_NOT_READY


def _stop(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # another one would break off the cleaning up
    raise SystemExit(128 + number)
