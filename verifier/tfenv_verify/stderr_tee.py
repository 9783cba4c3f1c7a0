"""Keep a copy of what C++ code writes to stderr: TensorFlow says there why it takes no GPU."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from typing import Iterator


class Copy:
    """The text written so far; complete once the ``with`` block has ended."""

    def __init__(self) -> None:
        self.text = ""

    def lines_with(self, *phrases: str) -> list[str]:
        """The lines that hold one of the phrases, shortened to 500 characters."""
        found = [line for line in self.text.splitlines() if any(p in line for p in phrases)]
        return [line[:500] for line in found]


@contextmanager
def stderr_copied() -> Iterator[Copy]:
    """Within the block, file descriptor 2 is passed on and copied."""
    copy = Copy()
    sys.stderr.flush()
    original = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    parts: list[bytes] = []

    def pump() -> None:
        while True:
            chunk = os.read(reading, 1 << 16)
            if not chunk:
                return
            parts.append(chunk)
            os.write(original, chunk)

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        yield copy
    finally:
        sys.stderr.flush()
        os.dup2(original, 2)  # closes the last writing end, unless a child inherited it
        thread.join(2.0)
        copy.text = b"".join(parts).decode("utf-8", "replace")
        if not thread.is_alive():
            os.close(reading)
            os.close(original)
