"""The docker client as a process: started, read to its end, and never left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfenv.errors import NotReadyError
from tfenv.progress import Decoder, Progress, Step, clean, logs

from .argv import client_env
from .diagnosis import BuildError, explain
from .log import Log
from .orphans import ends_with_parent


@dataclass(frozen=True)
class BuildResult:
    """A finished build: its manifest digest, its steps, and the seconds that it took."""

    digest: str
    steps: tuple[Step, ...]
    seconds: float
    log: Path


def run_build(
    argv: Sequence[str],
    env: Mapping[str, str],
    log_path: Path,
    on_event: Callable[[Mapping[str, Any]], None] = lambda _event: None,
    *,
    metadata: Path,
    clock: Callable[[], float] = time.monotonic,
) -> BuildResult:
    """Run a build to its end.

    Args:
        log_path: the readable log; the raw stream goes beside it, with the ending ``.rawjson``.
        on_event: gets each event of BuildKit as it comes.
        metadata: the file given to ``--metadata-file``.

    Raises:
        BuildError: a step failed. NotReadyError: no client, the engine went away, or no disk.
        KeyboardInterrupt: the client and its children are gone by then.
    """
    began = clock()
    progress, decoder = Progress(), Decoder()
    said: list[str] = []
    log = Log(log_path, argv)
    try:
        process = _start(argv, env)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                log.raw(line)
                _take(decoder.feed(line.decode("utf-8", "replace")), progress, log, said, on_event)
            status = process.wait()
        except BaseException:
            _end(process)
            raise
        if rest := decoder.close():
            _take(rest, progress, log, said, on_event)
    finally:
        log.close()
    if status != 0:
        raise explain(argv, status, progress, said, log_path)
    return BuildResult(_digest(metadata), progress.steps, clock() - began, log_path)


def _start(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            env=client_env(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is ours to pass on, once
            preexec_fn=ends_with_parent(),
        )
    except OSError as error:
        raise NotReadyError(
            f"cannot start {argv[0]}: {error.strerror}", remedy="check that the docker client is installed"
        ) from None


def _take(
    item: dict[str, Any] | str | None,
    progress: Progress,
    log: Log,
    said: list[str],
    on_event: Callable[[Mapping[str, Any]], None],
) -> None:
    if isinstance(item, str):
        if item:
            said.append(clean(item))
            log.text(item)
    elif item is not None:
        log.steps(progress.feed(item))
        numbers = {step.digest: step.number for step in progress.steps}
        for digest, text in logs(item):
            log.output(numbers.get(digest, 0), text)
        on_event(item)


def _digest(metadata: Path) -> str:
    try:
        digest = json.loads(metadata.read_text())["containerimage.digest"]
    except (OSError, ValueError, KeyError) as error:
        raise BuildError(
            f"the build wrote no digest to {metadata}: {error!r}",
            remedy="type the command again; an old buildx writes none: `docker buildx version`",
        ) from None
    return str(digest)


def _end(process: subprocess.Popen[bytes], patience: float = 10) -> None:
    """End the process group: the client and its plug-ins; BuildKit then drops the build."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return
