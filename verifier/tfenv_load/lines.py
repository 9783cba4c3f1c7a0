"""What the processes say to each other: one JSON object a line."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, Callable

Emit = Callable[["dict[str, Any]"], None]


def printer() -> Emit:
    """Emit to stdout, whole lines from any thread, flushed: the reader sees them if we are killed."""
    lock = threading.Lock()

    def emit(event: dict[str, Any]) -> None:
        line = json.dumps(event, sort_keys=True, default=str)
        with lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    return emit


def writer(fd: int) -> Emit:
    """Emit to the result pipe, which no grandchild inherits."""
    os.set_inheritable(fd, False)
    lock = threading.Lock()

    def emit(event: dict[str, Any]) -> None:
        data = (json.dumps(event, default=str) + "\n").encode("utf-8")
        with lock:
            while data:
                data = data[os.write(fd, data) :]

    return emit


def read(data: bytes) -> list[dict[str, Any]]:
    """The objects in ``data``; a last line that was cut off is left out."""
    found = []
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            item = json.loads(line)
        except ValueError:
            continue
        if isinstance(item, dict):
            found.append(item)
    return found
