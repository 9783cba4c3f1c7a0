"""SIGTERM as an exception, for who does not run under the command line: goes away with its last user."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class Terminated(KeyboardInterrupt):
    """The process got SIGTERM; handled like Ctrl-C, so that nothing is left behind."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM into ``Terminated`` while in here (only the main thread can)."""
    handled = signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, signal.SIG_IGN)
    if handled or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
