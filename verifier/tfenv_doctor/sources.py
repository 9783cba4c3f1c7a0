"""The ways of looking: reading only, each with a limit."""

from __future__ import annotations

import glob
import os
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple


class Sources:
    """The ways of looking; tests bring their own."""

    env = os.environ  # type: Mapping[str, str]

    def read(self, path: str) -> Optional[str]:
        """A file's text, None where there is none."""
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(1 << 20)
        except OSError:
            return None

    def matching(self, pattern: str) -> List[str]:
        """Paths that a pattern fits."""
        return sorted(glob.glob(pattern))

    def end(self, path: str) -> str:
        """Where a link ends; empty where nothing is there."""
        return os.path.realpath(path) if os.path.exists(path) else ""

    def opens(self, path: str) -> str:
        """Why a node cannot be opened: ``EPERM`` (control groups), ``EACCES`` (its mode), or ``ok``."""
        try:
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        except PermissionError as error:
            return "EPERM" if error.errno == 1 else "EACCES"
        except OSError as error:
            return type(error).__name__ if not error.errno else os.strerror(error.errno)
        return "ok"

    def writable(self, folder: str) -> bool:
        """Whether this user may write there; of one that is not there, in the nearest above it."""
        while folder not in ("", "/") and not os.path.exists(folder):
            folder = os.path.dirname(folder)
        return os.access(folder or "/", os.W_OK)

    def space(self, folder: str) -> int:
        """Size of a file system in MB, 0 where it is not there."""
        try:
            found = os.statvfs(folder)
        except OSError:
            return 0
        return found.f_blocks * found.f_frsize // 10**6

    def run(
        self, argv: Sequence[str], limit: float, env: Optional[Mapping[str, str]] = None
    ) -> Tuple[int, str, str]:
        """(status, stdout, stderr) of a command; 127 where it is missing, 124 where it does not end."""
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=None if env is None else dict(env),
            )
        except OSError:
            return 127, "", ""
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            return 124, "", ""
        return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def user(self) -> Dict[str, Any]:
        """Its number, and whether it has an entry in passwd."""
        import pwd

        try:
            pwd.getpwuid(os.getuid())
            named = True
        except KeyError:
            named = False
        return {"uid": os.getuid(), "named": named}

    def paths(self) -> List[str]:
        """Where this Python finds packages."""
        return [path for path in sys.path if path]
