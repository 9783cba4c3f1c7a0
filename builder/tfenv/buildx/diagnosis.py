"""What a failed build means."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from tfenv.errors import NotReadyError, TfenvError
from tfenv.progress import Progress, Step

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
