"""No child outlives tfenv, not even one that is killed: then the kernel ends the child."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def ends_with_parent() -> Callable[[], None] | None:
    """What a child runs before its program, for ``preexec_fn``; None where the kernel is not Linux.

    The child gets SIGTERM when the thread that started it ends, so start it from one that waits for it.
    """
    if not sys.platform.startswith("linux"):
        return None
    # Looked up here: between fork and exec nothing may be imported, another thread may hold that lock.
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:  # it was killed before the line above
            os._exit(1)

    return bind
