"""An end for what we have started, also where we are killed and cannot see to it ourselves."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def when_killed(command: Sequence[str]) -> Iterator[None]:
    """Have a command run if this process ends before the block does, by SIGKILL too.

    A shell waits for the end of a pipe of which only we hold the other end: what Linux has for this itself
    (PR_SET_PDEATHSIG) reaches one process, and not what that has started.
    """
    script = 'read -r _; "$@"'  # not exec: kill is the shell's own where there is no such program
    guard = subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        guard.kill()
        guard.wait()
        assert guard.stdin is not None
        guard.stdin.close()
