"""A command whose last words are kept: all that it says goes on to where it goes, unchanged and at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

KEPT = 256 * 1024  # bytes of the end
_BLOCK = 65536
_PASSED_ON = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT))


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code as a shell tells it, and the end of what it said."""

    code: int
    said: bytes


def watch(argv: Sequence[str], *, terminal: bool) -> Ended:
    """Run ``argv`` with this process's own input and output, and keep the end of what it says of errors.

    Args:
        terminal: it shall have a terminal, as this process has: then both streams are kept, else stderr.

    Raises:
        OSError: there is no such program.
    """
    return _on_terminal(argv) if terminal else _beside(argv)


class _Tail:
    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        self._bytes += data
        if len(self._bytes) > 2 * KEPT:
            del self._bytes[:-KEPT]

    def end(self) -> bytes:
        return bytes(self._bytes[-KEPT:])


def _beside(argv: Sequence[str]) -> Ended:
    tail = _Tail()
    # What a terminal sends goes to all programs on it: passed on, it would come twice.
    both = {signal.SIGINT, signal.SIGQUIT} if _has_terminal() else set()
    with _signals(_PASSED_ON - both) as passed_on, subprocess.Popen(argv, stderr=subprocess.PIPE) as child:
        passed_on(child.pid)
        assert child.stderr is not None
        while data := os.read(child.stderr.fileno(), _BLOCK):
            tail.add(data)
            _write(2, data)
        code = child.wait()
    return Ended(code if code >= 0 else 128 - code, tail.end())


def _on_terminal(argv: Sequence[str]) -> Ended:
    """Through a terminal of its own, as `script` does: the command can draw, ask, and be resized."""
    import pty
    import termios
    import tty

    tail = _Tail()
    pid, inner = pty.fork()
    if pid == 0:
        try:
            os.execvp(argv[0], list(argv))
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
            os._exit(127)
    outer = sys.stdin.fileno()
    before = termios.tcgetattr(outer)

    def resize(*_: object) -> None:
        with contextlib.suppress(OSError):
            _resize(inner, outer)

    resized = signal.signal(signal.SIGWINCH, resize)
    resize()
    try:
        tty.setraw(outer)  # keys, Ctrl-C among them, are the command's
        with _signals(_PASSED_ON) as passed_on:
            passed_on(pid)
            _copy(outer, inner, tail)
            _, status = os.waitpid(pid, 0)
    finally:
        termios.tcsetattr(outer, termios.TCSAFLUSH, before)
        signal.signal(signal.SIGWINCH, resized)
        os.close(inner)
    code = os.waitstatus_to_exitcode(status)
    return Ended(code if code >= 0 else 128 - code, tail.end())


def _copy(outer: int, inner: int, tail: _Tail) -> None:
    sources = [outer, inner]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if inner in ready:
            try:
                data = os.read(inner, _BLOCK)
            except OSError:  # Linux: nobody has the terminal open any more
                data = b""
            if not data:
                return
            tail.add(data)
            _write(1, data)
        if outer in ready:
            data = os.read(outer, _BLOCK)
            if data:
                _write(inner, data)
            else:
                sources.remove(outer)


def _write(file: int, data: bytes) -> None:
    """All of it; a reader that is gone is no reason to stop the command."""
    while data:
        try:
            data = data[os.write(file, data) :]
        except BlockingIOError:
            select.select([], [file], [])
        except OSError:
            return


@contextlib.contextmanager
def _signals(numbers: Iterable[signal.Signals]) -> Iterator[Callable[[int], None]]:
    """Signals that this process gets go to the command, which decides what to do."""
    child: list[int] = []
    early: list[int] = []  # that came before the command was there

    def on(number: int, _frame: object) -> None:
        if not child:
            early.append(number)
        with contextlib.suppress(ProcessLookupError):
            for pid in child:
                os.kill(pid, number)

    def pass_on_to(pid: int) -> None:
        child.append(pid)
        for number in early:
            on(number, None)

    # One that is ignored stays so, here and in the command: that is what `nohup` is for.
    heard = [number for number in _PASSED_ON if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, on if number in numbers else _nothing) for number in heard}
    try:
        yield pass_on_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _nothing(_number: int, _frame: object) -> None:
    """The command has got the same signal."""


def _has_terminal() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _resize(inner: int, outer: int) -> None:
    """The inner terminal gets the size of the outer one; termios.tcsetwinsize came with Python 3.11."""
    import fcntl
    import termios

    fcntl.ioctl(inner, termios.TIOCSWINSZ, fcntl.ioctl(outer, termios.TIOCGWINSZ, b"\0" * 8))
