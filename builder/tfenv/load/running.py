"""Run the program in a container, or in an unpacked image, and collect what it says."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tfenv.container import Bind, Ended, ProgramMissingError, Spec
from tfenv.eventlines import Lines
from tfenv.files import LINES_MOST
from tfenv.verify import Start

from .collect import event_in
from .pack import NAME

FOLDER = "/tfenv"  # where it is mounted
_GRACE = 30  # seconds that it has to end by itself
_STDERR_KEPT = 64 * 1024  # bytes
_PYTHONS = ("python", "python3")

Event = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Its events, and how it ended: ``noted`` says what was wrong with that, if anything."""

    events: tuple[Event, ...]
    ended: Ended
    stderr: str
    noted: str = ""


@contextmanager
def mounted(packed: bytes) -> Iterator[Path]:
    """A folder with the program, readable for whatever user the image has."""
    with tempfile.TemporaryDirectory(prefix="tfenv-load-") as name:
        folder = Path(name)
        (folder / NAME).write_bytes(packed)
        (folder / NAME).chmod(0o644)
        folder.chmod(0o755)
        yield folder


def run_load(
    start: Start,
    spec: Spec,
    packed: bytes,
    arguments: Sequence[str],
    *,
    limit: float,
    on_event: Callable[[Event], None] = lambda _event: None,
) -> Collected:
    """Run ``load.pyz ARGUMENTS`` in the image of ``spec``; ended after ``limit`` seconds at the latest.

    Args:
        start: runs a container: ``Containers.container``, or ``rootfs_run.Rootfs.container``.
        on_event: gets each event as it comes.

    Raises:
        NotReadyError: the image cannot be started here.
    """
    last = Collected(events=(), ended=Ended(127), stderr="", noted="the image has no python")
    with mounted(packed) as folder:
        spec = replace(spec, binds=(*spec.binds, Bind(folder, FOLDER)))
        for python in _PYTHONS:
            command = ("-B", f"{FOLDER}/{NAME}", *arguments)
            try:
                done = _attempt(start, replace(spec, entrypoint=(python,), command=command), limit, on_event)
            except ProgramMissingError:
                continue
            if done.ended.status != 127 or done.events:
                return done
    return last


def _attempt(start: Start, spec: Spec, limit: float, on_event: Callable[[Event], None]) -> Collected:
    events: list[Event] = []
    lines, stderr, left = Lines(), b"", LINES_MOST
    late = threading.Event()

    def take(line: bytes) -> None:
        nonlocal left
        if (event := event_in(line.decode("utf-8", "replace"))) and (left := left - len(line)) >= 0:
            events.append(event)
            with contextlib.suppress(KeyError, TypeError, ValueError):  # what it shows may not be there
                on_event(event)

    with start(spec) as running:

        def stop() -> None:
            late.set()
            running.kill()

        watch = threading.Timer(limit + _GRACE, stop)
        watch.daemon = True
        watch.start()
        try:
            for out, err in running.output():
                stderr = (stderr + err)[-_STDERR_KEPT:]
                for line in lines.feed(out):
                    take(line)
            take(lines.rest())
            ended = running.wait()
        finally:
            watch.cancel()
    end = next((event for event in events if event["event"] == "end"), None)
    noted = ""
    if late.is_set():
        noted = f"it had not ended after {limit:.0f} s"
    elif ended.out_of_memory:
        noted = "the kernel ended it: out of memory"
    elif left < 0:
        noted = f"it said more than {LINES_MOST} bytes"
    elif end is None:
        noted = f"it ended with exit status {ended.status} before its end"
    elif ended.status and not end.get("why"):
        noted = f"it ended with exit status {ended.status}, and does not say why"
    return Collected(events=tuple(events), ended=ended, stderr=stderr.decode("utf-8", "replace"), noted=noted)
