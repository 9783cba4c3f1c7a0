"""Run a part of the suite in a process of its own, and judge what became of it.

The child's stdout and stderr both end on our stderr; its result comes through a pipe of its own,
so nothing that TensorFlow or a C library prints can be taken for a result.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from .noise import without_noise
from .protocol import FAIL, NOT_RUN, PASS, finding, outcome

RESULT_LIMIT = 8 << 20  # bytes; a larger result is a defect, not a report
FORWARD_LIMIT = 1 << 20  # bytes of a child's output that are passed on
TAIL_LINES = 60
_CHUNK = 1 << 16
_DRAIN_SECONDS = 5.0
_ASK_SECONDS = 0.25


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    Args:
        returncode: negative for a signal, as in subprocess. stopped: why it was killed before its time.
    """

    returncode: int
    timed_out: bool
    seconds: float
    result: bytes
    tail: str
    stopped: str = ""


def suite_command(*arguments: str, isolated: bool = False) -> list[str]:
    """The command line that runs this very suite again; ``-B``: never write a .pyc."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # Under ``env -i`` with a bare argv[0] Python does not know its own path.
    python = sys.executable or os.path.realpath("/proc/self/exe")
    return [python, "-B", *(["-I", "-S"] if isolated else []), here, *arguments]


def run_child(
    command: list[str],
    timeout: float,
    *,
    env: Mapping[str, str] | None = None,
    own_group: bool = True,
    forward: Callable[[bytes], Any] | None = None,
    stop: Callable[[], str] | None = None,
) -> Ended:
    """Run ``command`` with ``--result-fd N`` added; kill its whole group after ``timeout`` seconds.

    Args:
        env: the child's environment; ours if None.
        own_group: False inside a check, so that the check's own kill reaches this child too.
        forward: where its output goes; stderr if None.
        stop: asked while it runs: once it says why, the child is killed.
    """
    reading, writing = os.pipe()
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            [*command, "--result-fd", str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(writing,),
            env=None if env is None else dict(env),
            start_new_session=own_group,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    assert process.stdout is not None
    result = _Keep()
    output = _Tail(forward or _to_stderr)
    readers = [
        threading.Thread(target=_drain, args=(reading, result.take), daemon=True),
        threading.Thread(target=_drain, args=(process.stdout.fileno(), output.take), daemon=True),
    ]
    for reader in readers:
        reader.start()
    timed_out, stopped = False, ""
    try:
        stopped = _wait(process, timeout, stop)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        _kill(process, own_group)
        process.wait()
    seconds = time.monotonic() - started
    for reader in readers:
        # A descendant that left the group can hold the pipe; its output is not waited for.
        reader.join(_DRAIN_SECONDS)
    if not any(reader.is_alive() for reader in readers):
        os.close(reading)
        process.stdout.close()
    return Ended(process.returncode, timed_out, seconds, result.bytes(), output.text(), stopped)


def _wait(process: subprocess.Popen[bytes], timeout: float, stop: Callable[[], str] | None) -> str:
    """Wait for its end, or for a reason to stop it, which is returned."""
    if stop is None:
        process.wait(timeout)
        return ""
    until = time.monotonic() + timeout
    while True:
        try:
            process.wait(min(_ASK_SECONDS, max(0.0, until - time.monotonic())))
            return ""
        except subprocess.TimeoutExpired:
            why = stop()
            if why:
                return why
            if time.monotonic() >= until:
                raise


def judge(name: str, ended: Ended, timeout: float) -> dict[str, Any]:
    """Turn the end of a check's process into its ``check`` event. Fails closed."""

    def failed(message: str, remedy: str = "") -> dict[str, Any]:
        findings = [finding("error", message, ended.tail, remedy)]
        return outcome(name, FAIL, seconds=ended.seconds, findings=findings)

    if ended.timed_out:
        return failed(
            f"{name} had not finished after {ended.seconds:.0f} s and was killed "
            f"(its limit is {timeout:.0f} s)",
            "the last lines of its output, in the evidence, say where it was",
        )
    if ended.returncode < 0:
        return failed(
            f"{name} was killed by {signal_name(-ended.returncode)}",
            "SIGKILL means out of memory most of the time: raise the container's memory limit"
            if ended.returncode == -signal.SIGKILL
            else "the last lines of its output, in the evidence, say where it was",
        )
    if len(ended.result) > RESULT_LIMIT:
        return failed(f"{name} reported more than {RESULT_LIMIT} bytes")
    if not ended.result:
        return failed(f"{name} ended with exit code {ended.returncode} and without a result")
    event = _event(name, ended)
    if event is None:
        return failed(f"{name} reported something that is not a result: {ended.result[:200]!r}")
    if ended.returncode != 0:
        return failed(f"{name} reported {event['status']} but ended with code {ended.returncode}")
    return event


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11; ``signal 64`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _event(name: str, ended: Ended) -> dict[str, Any] | None:
    try:
        data = json.loads(ended.result.decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(data, dict) or data.get("status") not in (PASS, FAIL, NOT_RUN):
        return None
    findings, facts, reason = data.get("findings"), data.get("facts"), data.get("reason", "")
    if not isinstance(findings, list) or not isinstance(facts, dict) or not isinstance(reason, str):
        return None
    return outcome(
        name,
        data["status"],
        seconds=ended.seconds,
        findings=findings,
        facts=facts,
        reason=reason,
    )


def _kill(process: subprocess.Popen[bytes], own_group: bool) -> None:
    """Kill the group even when its leader has ended: what it left behind must not run on."""
    try:
        if own_group:
            os.killpg(process.pid, signal.SIGKILL)
        elif process.poll() is None:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass


def _drain(fd: int, take: Callable[[bytes], None]) -> None:
    while True:
        try:
            chunk = os.read(fd, _CHUNK)
        except OSError:
            return
        if not chunk:
            return
        take(chunk)


def _to_stderr(chunk: bytes) -> None:
    sys.stderr.flush()
    os.write(2, chunk)


class _Keep:
    """Keeps what comes, up to one byte more than the limit."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def take(self, chunk: bytes) -> None:
        self._parts += chunk[: max(0, RESULT_LIMIT + 1 - len(self._parts))]

    def bytes(self) -> bytes:
        return bytes(self._parts)


class _Tail:
    """Passes output on, up to a limit, and keeps the last lines as evidence."""

    def __init__(self, forward: Callable[[bytes], Any]) -> None:
        self._forward = forward
        self._left = FORWARD_LIMIT
        self._last = b""

    def take(self, chunk: bytes) -> None:
        self._last = (self._last + chunk)[-_CHUNK:]
        if self._left > 0:
            self._forward(chunk[: self._left])
            self._left -= len(chunk)
            if self._left <= 0:
                self._forward(b"\n[the rest of this check's output is left out]\n")

    def text(self) -> str:
        whole = self._last.decode("utf-8", "replace")
        lines = without_noise(whole.splitlines())
        return "\n".join(line[:500] for line in lines[-TAIL_LINES:])
