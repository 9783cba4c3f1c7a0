"""Xid errors in the kernel's log, where we may read it: those that come after we opened it."""

from __future__ import annotations

import os
import re

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")


def parse(text: str) -> list[tuple[str, int]]:
    """(place on the PCI bus, Xid) of each Xid line."""
    return [(place, int(number)) for place, number in _XID.findall(text)]


class KernelLog:
    """The log from now on. ``readable`` says whether the host lets us."""

    def __init__(self, path: str = "/dev/kmsg") -> None:
        self._fd = -1
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:
            self.close()

    @property
    def readable(self) -> bool:
        """Whether there is something to read."""
        return self._fd >= 0

    def xids(self) -> list[tuple[str, int]]:
        """Those that came since the last call."""
        lines = []
        while self.readable:
            try:
                record = os.read(self._fd, 8192)  # one record a read
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue  # records were overwritten before we came
            except OSError:
                self.close()
                break
            if not record:
                break
            lines.append(record.decode("utf-8", "replace"))
        return parse("\n".join(lines))

    def close(self) -> None:
        """Close it."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
