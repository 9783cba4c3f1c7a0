"""Run the suite in a container, whatever the image has to start it with, and not for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from tfenv.container import Ended, Output, ProgramMissingError, Spec
from tfenv.eventlines import Lines
from tfenv.report import Check

from .protocol import Outcome, take

FOLDER = "/tfenv"  # where the suite is mounted
_GRACE = 30  # seconds that the limit inside the container has to act before the host kills it
_STDERR_KEPT = 64 * 1024  # bytes

# How to start the suite: with a time limit inside the container where the image has `timeout`.
# 127 is what `timeout` says when the image has no such Python.
_LIMIT = ("timeout", "-k", "10")
_PYTHONS = ("python", "python3")


class Container(Protocol):
    """A started container, as ``container.Running``."""

    def output(self) -> Iterator[Output]:
        """Its output in pieces, to its end."""
        ...

    def wait(self) -> Ended:
        """How it ended."""
        ...

    def kill(self) -> None:
        """End it now."""
        ...


Start = Callable[[Spec], AbstractContextManager[Container]]
# What the suite said, how it ended (None where nobody knows: it is in a file), the end of its stderr.
Said = tuple[Outcome, "Ended | None", str]
_Ran = tuple[Outcome, Ended, str]


@dataclass(frozen=True)
class Job:
    """What is to be run in an image.

    Args:
        limit: seconds for the suite. more: arguments of the suite. on_check: gets each check as it ends.
    """

    spec: Spec
    suite: str
    limit: int
    more: tuple[str, ...]
    on_check: Callable[[Check], None]


Runner = Callable[[Job], Said]


def in_one(start: Start) -> Runner:
    """Run the suite in one container."""

    def run(job: Job) -> Said:
        return run_first(start, job.spec, commands(job.limit, job.suite, job.more), job.limit, job.on_check)

    return run


def commands(limit: int, suite: str, more: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """The ways to start the suite, best first; ``limit`` in seconds; ``more`` arguments of the suite."""
    arguments = (f"{FOLDER}/verify.pyz", "--declared", f"{FOLDER}/declared.json", "--suite", suite, *more)
    bare = [(python, "-B", *arguments) for python in _PYTHONS]
    return [*((*_LIMIT, str(limit), *command) for command in bare), *bare]


def run_first(
    start: Start,
    spec: Spec,
    ways: Sequence[tuple[str, ...]],
    limit: int,
    on_check: Callable[[Check], None],
) -> _Ran:
    """The outcome of the first way that starts; the image may lack `timeout` or `python`."""
    last = (Outcome(), Ended(127), "")
    for way in ways:
        entry = replace(spec, entrypoint=way[:1], command=way[1:])
        try:
            outcome, ended, stderr = _attempt(start, entry, limit, on_check)
        except ProgramMissingError as error:
            last = (Outcome(), Ended(127), error.message)
            continue
        if ended.status == 127 and outcome.silent:
            last = (outcome, ended, stderr)
            continue
        return outcome, ended, stderr
    return last


def _attempt(start: Start, spec: Spec, limit: int, on_check: Callable[[Check], None]) -> _Ran:
    outcome, lines, stderr = Outcome(), Lines(), b""
    with start(spec) as running:
        # `timeout` in the container may be missing, or the container may be stuck in the kernel.
        watch = threading.Timer(limit + _GRACE, running.kill)
        watch.daemon = True
        watch.start()
        try:
            for out, err in running.output():
                stderr = (stderr + err)[-_STDERR_KEPT:]
                for line in lines.feed(out):
                    if check := take(outcome, line.decode("utf-8", "replace")):
                        on_check(check)
            take(outcome, lines.rest().decode("utf-8", "replace"))
            ended = running.wait()
        finally:
            watch.cancel()
    return outcome, ended, stderr.decode("utf-8", "replace")
