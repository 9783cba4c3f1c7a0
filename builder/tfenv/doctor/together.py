"""Ask many things at once, until a moment."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping

from .evidence import Ran


def together(tasks: Mapping[str, Callable[[], Ran]], end: float) -> dict[str, Ran]:
    """Do all at once; one that has not ended by then, or fails, is said to have.

    Args:
        end: of ``time.monotonic``.
    """
    done: queue.SimpleQueue[tuple[str, Ran]] = queue.SimpleQueue()

    def work(name: str, task: Callable[[], Ran]) -> None:
        try:
            done.put((name, task()))
        except Exception as error:  # whatever a source does, the others are answered
            done.put((name, Ran(126, err=type(error).__name__)))

    for name, task in tasks.items():
        # A thread that hangs is left behind: one of a pool would be waited for at the end.
        threading.Thread(target=work, args=(name, task), daemon=True).start()
    found: dict[str, Ran] = {}
    while len(found) < len(tasks) and (left := end - time.monotonic()) > 0:
        try:
            name, ran = done.get(timeout=left)
        except queue.Empty:
            break
        found[name] = ran
    return {name: found.get(name, Ran(124)) for name in tasks}
