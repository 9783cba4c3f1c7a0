"""Drive `docker buildx build`: the argument list, the running process, and what went wrong.

The Docker SDK cannot speak to BuildKit: https://github.com/docker/docker-py/issues/2230
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tfenv.engine import Engine
from tfenv.errors import NotReadyError, TfenvError
from tfenv.progress import Decoder, Progress, Step, clean, logs

PLATFORM = "linux/amd64"
# Decides the bytes of the archive. No rewrite-timestamp: see templates/tools/settle.sh.
EXPORT = ("compression=zstd", "compression-level=7", "oci-mediatypes=true")

# buildx adds the `proxies` of the client's config.json as build arguments, where every RUN sees them
# (with the password in them). A given argument, also an empty one, wins over it.
PROXY_ARGS = tuple(
    name
    for low in ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
    for name in (low.upper(), low)
)
# Variables of the client that would change what is built.
_DROPPED = (
    "SOURCE_DATE_EPOCH",
    "BUILDX_BUILDER",
    "BUILDX_GIT_LABELS",
    "BUILDX_METADATA_PROVENANCE",
    "BUILDX_METADATA_WARNINGS",
    "BUILDX_NO_DEFAULT_LOAD",
    "BUILDKIT_PROGRESS",
    "BUILDKIT_SYNTAX",
    "DOCKER_DEFAULT_PLATFORM",
    "EXPERIMENTAL_BUILDKIT_SOURCE_POLICY",
)
_ENGINE_LOST = (
    "cannot connect to the docker daemon",
    "error reading from server",
    "error reading preface from server",
    "code = unavailable",
    "connection refused",
    "connection reset by peer",
    "transport is closing",
    "unexpected eof",
    "no active session",
)
_DISK_FULL = ("no space left on device", "disk quota exceeded")


class BuildError(TfenvError):
    """A step of the build failed.

    Args:
        step: the failing step, None where the build failed outside of one.
        tail: the last lines that it printed; log: the whole output.
        command: the exact shell line that repeats the build.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str,
        step: Step | None = None,
        tail: Sequence[str] = (),
        log: Path | None = None,
        command: str = "",
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.step = step
        self.tail = tuple(tail)
        self.log = log
        self.command = command


class Terminated(KeyboardInterrupt):
    """The process got SIGTERM; handled like Ctrl-C, so that nothing is left behind."""


@dataclass(frozen=True)
class BuildResult:
    """A finished build: its manifest digest, its steps, and the seconds that it took."""

    digest: str
    steps: tuple[Step, ...]
    seconds: float
    log: Path


def _csv(*fields: str) -> str:
    """``fields`` as one CSV record, as buildx reads --output: a path may hold a comma."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(fields)
    return out.getvalue()


def build_argv(
    engine: Engine,
    *,
    context: Path,
    dockerfile: Path,
    epoch: int,
    output: Path,
    metadata: Path,
    named_contexts: Mapping[str, Path] | None = None,
    labels: Mapping[str, str] | None = None,
    build_args: Mapping[str, str] | None = None,
    no_cache: bool = False,
    target: str | None = None,
    image: str = "",
) -> list[str]:
    """The argument list of a reproducible build to an OCI archive.

    Args:
        epoch: Unix seconds; creation time of the image, upper bound of the file times in it.
        output: the archive to write, best under a temporary name: a failed build leaves it empty.
        metadata: JSON file that buildx writes the digest to.
        image: also keep the image in the engine under this name; only for the engine's own builder.
    """
    argv = [engine.client or "docker", "buildx", "build"]
    if engine.builder:
        argv += ["--builder", engine.builder.name]
    argv += ["--platform", PLATFORM, "--file", str(dockerfile)]
    for name, path in sorted((named_contexts or {}).items()):
        argv += ["--build-context", f"{name}={path}"]
    given = {"SOURCE_DATE_EPOCH": str(epoch), **(build_args or {})}
    if engine.proxied:
        given |= dict.fromkeys(PROXY_ARGS, "")
    for name, value in given.items():
        argv += ["--build-arg", f"{name}={value}"]
    for name, value in sorted((labels or {}).items()):
        argv += ["--label", f"{name}={value}"]
    if target:
        argv += ["--target", target]
    if no_cache:
        argv += ["--no-cache"]
    argv += ["--provenance=false", "--sbom=false", "--progress=rawjson"]
    argv += ["--metadata-file", str(metadata)]
    argv += ["--output", _csv("type=oci", f"dest={output}", *EXPORT)]
    if image:
        argv += ["--output", _csv("type=image", f"name={image}", *EXPORT)]
    return [*argv, str(context)]


def client_env(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of the client: ``env`` without what would change the result."""
    kept = {name: value for name, value in env.items() if name not in _DROPPED}
    return {**kept, "BUILDX_GIT_INFO": "false", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}


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


def _end(process: subprocess.Popen[bytes], patience: float = 10) -> None:
    """End the process group: the client and its plug-ins; BuildKit then drops the build."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


class _Log:
    """The readable log, and the raw stream beside it."""

    def __init__(self, path: Path, argv: Sequence[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._text: IO[str] = path.open("w", encoding="utf-8")
        self._raw: IO[bytes] = path.with_suffix(".rawjson").open("wb")
        self._open_line = ""
        self._states: dict[str, str] = {}
        self._text.write(f"$ {shlex.join(argv)}\n")

    def raw(self, line: bytes) -> None:
        self._raw.write(line)

    def text(self, line: str) -> None:
        self._text.write(f"{clean(line)}\n")
        self._text.flush()

    def steps(self, changed: Sequence[Step]) -> None:
        for step in changed:
            if self._states.get(step.digest) != step.state and step.state != "waiting":
                self._states[step.digest] = step.state
                took = f" {step.spent:.1f} s" if step.completed else ""
                why = f": {step.error}" if step.error else ""
                self.text(f"#{step.number} {step.state}{took} {step.name}{why}")

    def output(self, number: int, text: str) -> None:
        for line in clean(text).splitlines():
            self.text(f"#{number} | {line}")

    def close(self) -> None:
        self._text.close()
        self._raw.close()


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
        KeyboardInterrupt: also for SIGTERM; the client and its children are gone by then.
    """
    began = clock()
    progress, decoder = Progress(), Decoder()
    said: list[str] = []
    log = _Log(log_path, argv)
    try:
        with terminable():
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
            start_new_session=True,
        )
    except OSError as error:
        raise NotReadyError(
            f"cannot start {argv[0]}: {error.strerror}", remedy="check that the docker client is installed"
        ) from None


def _take(
    item: dict[str, Any] | str | None,
    progress: Progress,
    log: _Log,
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


def explain(
    argv: Sequence[str], status: int, progress: Progress, said: Sequence[str], log: Path
) -> TfenvError:
    """What a failed build means, from its steps and from what the client ``said`` outside of them."""
    step = progress.failed
    tail = progress.tail(step.digest) if step else list(said)[-20:]
    own = "\n".join([*said, step.error if step else ""]).lower()
    if any(sign in f"{own}\n{' '.join(tail).lower()}" for sign in _DISK_FULL):
        return NotReadyError(
            f"the disk is full{f' (in step {step.name})' if step else ''}; the whole log is {log}",
            remedy="free some: `tfenv gc`, `docker image prune`, `docker builder prune`",
        )
    if any(sign in own for sign in _ENGINE_LOST) and "did not complete successfully" not in own:
        return NotReadyError(
            f"the engine went away during the build; the whole log is {log}",
            remedy="check it with `docker version`, restart it if need be, and build again:\n"
            "finished steps are kept",
        )
    command = shlex.join(argv)
    what = f"step {step.name}\n{step.error}" if step else f"`docker buildx build` ended with {status}"
    shown = "".join(f"\n  | {line}" for line in tail)
    return BuildError(
        f"the build failed: {what}{shown}\nthe whole log: {log}",
        remedy=f"to repeat exactly this build:\n{command}",
        step=step,
        tail=tail,
        log=log,
        command=command,
    )
