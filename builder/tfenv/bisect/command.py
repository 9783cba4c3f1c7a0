"""Run the user's command and judge it by git-bisect's convention for exit codes."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfenv.bisect.guard import when_killed
from tfenv.bisect.model import Word
from tfenv.errors import TfenvError
from tfenv.progress import clean

SKIP = 125
_NOT_RUN = {126: "may not be executed", 127: "was not found"}
# Signals with which a program ends by its own fault, as TensorFlow does on a wrong library.
_CRASHES = {
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGBUS", "SIGFPE", "SIGTRAP", "SIGSYS")
}
_EXCEPTION = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)(?::|$)")
_CHATTER = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] ")  # TensorFlow's own log
_KEPT = 4 << 20  # bytes of a test's output that go to its log
_TAIL = 1 << 16  # and of its end, in any case


class NotJudgedError(TfenvError):
    """The command said nothing about the pins: it could not be run, or somebody ended it."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How one run of the command ended.

    Args:
        status: exit code, or minus the signal's number; None where it ran out of time.
        seconds: it took. said: the end of its output.
    """

    status: int | None
    seconds: float
    said: str


def judge(ran: Ran, command: Sequence[str]) -> tuple[Word, str]:
    """(good, bad or skip; why, in one line).

    Raises:
        NotJudgedError: the end of the command is no answer.
    """
    status = ran.status
    if status is None:
        return "bad", f"not done after {ran.seconds:.0f} s"
    number = -status if status < 0 else status - 128
    if status == 0:
        return "good", ""
    if status == SKIP:
        return "skip", f"the command says so, with exit code {SKIP}"
    if status in _NOT_RUN:
        raise NotJudgedError(
            f"the command {_NOT_RUN[status]} (exit code {status}): {command[0]}{_tail_of(ran)}",
            remedy="it has to be a program, with its arguments, that is found from this folder; "
            "for shell syntax: -- sh -c '...'",
        )
    if 0 < status < 128:
        return "bad", _because(f"exit code {status}", ran)
    if number in _CRASHES:
        return "bad", _because(f"ended by {signal.Signals(number).name}", ran)
    with contextlib.suppress(ValueError):
        raise NotJudgedError(
            f"the command was ended by {signal.Signals(number).name}: no word about the pins{_tail_of(ran)}",
            remedy="see who ended it (out of memory: `dmesg`), then type the command again: it goes on here",
        )
    raise NotJudgedError(
        f"the command ended with {status}, which says neither good (0), bad (1 to 124) nor skip (125)",
        remedy="let it end so, as `git bisect run` asks for, too: -- sh -c 'COMMAND || exit 1'",
    )


def last_line(text: str) -> str:
    """The line that says most: that of the last Python exception, or the last one that is not chatter."""
    lines = [line.strip() for line in clean(text).splitlines() if line.strip()]
    raised = [line for line in lines if _EXCEPTION.match(line)]
    told = [line for line in lines if not _CHATTER.match(line)]
    return (raised or told or [""])[-1][:200]


def run_here(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: Path,
    log: Path,
    timeout: float | None,
) -> Ran:
    """Run it to its end, in a process group of its own that does not outlive it.

    Args:
        env: all of its environment; its PATH is searched. folder: where it runs.
        log: gets the output, the first few megabytes and the end.
        timeout: seconds; None for as long as it takes.
    """
    started = time.monotonic()
    output = _Output(log)
    with output:  # first: where it cannot be written, nothing is started
        try:
            process = subprocess.Popen(
                list(command),
                env=dict(env),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except FileNotFoundError:
            return Ran(status=127, seconds=0.0, said="")
        except OSError as error:
            return Ran(status=126, seconds=0.0, said=error.strerror or str(error))
        try:
            with when_killed(["kill", "-KILL", f"-{process.pid}"]):
                done = _pump(process, output, None if timeout is None else started + timeout)
        finally:
            # What it has started goes with it, also when we are told to end.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    seconds = time.monotonic() - started
    return Ran(status=process.returncode if done else None, seconds=seconds, said=output.tail)


def _pump(process: subprocess.Popen[bytes], output: _Output, until: float | None) -> bool:
    """Read until it has ended; False where time ran out.

    Its end counts, not the end of its output: something that it left running may keep that open.
    """
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    open_, late = True, 0
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            if until is not None and not ended and time.monotonic() >= until:
                return False
            if open_ and ready.select(0 if ended else 0.05):
                data = os.read(process.stdout.fileno(), 1 << 16)
                output.write(data)
                late += len(data) if ended else 0
                if not data:
                    ready.unregister(process.stdout)
                    open_ = False
                if late <= _KEPT:
                    continue
            if ended:
                return True
            if not open_:
                time.sleep(0.02)


class _Output:
    """A log with a limit, and the end of what was said."""

    def __init__(self, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._file = log.open("ab")
        self._left = _KEPT
        self._end = bytearray()

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            if self._left <= 0:
                self._file.write(b"\n[...]\n" + bytes(self._end))

    def write(self, data: bytes) -> None:
        self._file.write(data[: max(0, self._left)])
        self._left -= len(data)
        self._end = (self._end + data)[-_TAIL:]

    @property
    def tail(self) -> str:
        return bytes(self._end).decode("utf-8", "replace")


def _because(what: str, ran: Ran) -> str:
    line = last_line(ran.said)
    return f"{what}: {line}" if line else what


def _tail_of(ran: Ran) -> str:
    line = last_line(ran.said)
    return f"\n{line}" if line else ""
