"""A process of this host that is listened to and ended as a container of an engine is.

Only the standard library and tfenv's own code are used, as by ``rootfs_run``.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator

from tfenv.container.spec import Ended

_CHUNK = 1 << 16
_LOOK_SECONDS = 1.0  # between two looks whether it has ended
_DRAIN_SECONDS = 5.0  # that what it left behind is still listened to


class RunningProcess:
    """A started process, the leader of a session, as ``container.Running``."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def output(self) -> Iterator[tuple[bytes, bytes]]:
        """(stdout, stderr) in pieces as they come, to the end.

        What it leaves behind may hold the pipes for ever: once it has ended, that is listened to no longer.
        """
        process = self._process
        assert process.stdout is not None and process.stderr is not None
        until = math.inf
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ, 0)
            ready.register(process.stderr, selectors.EVENT_READ, 1)
            while ready.get_map() and time.monotonic() < until:
                for key, _ in ready.select(_LOOK_SECONDS):
                    data = os.read(key.fd, _CHUNK)
                    if not data:
                        ready.unregister(key.fileobj)
                    elif key.data == 0:
                        yield data, b""
                    else:
                        yield b"", data
                if until == math.inf and self._has_ended(os.WNOHANG):
                    until = time.monotonic() + _DRAIN_SECONDS

    def wait(self) -> Ended:
        """Its end, and that of all that it left in its session; a signal as 128 + its number."""
        self._has_ended()
        self.kill()
        status = self._process.wait()
        return Ended(128 - status if status < 0 else status)

    def kill(self) -> None:
        """End it and all that it started."""
        if self._process.returncode is None:  # else its number may be another's by now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _has_ended(self, options: int = 0) -> bool:
        """Whether it has ended, of which nobody else is told; without options, wait for that."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | options) is not None
