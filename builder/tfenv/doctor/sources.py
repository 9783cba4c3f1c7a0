"""How a host is looked at: reading only, each with a limit, nothing raised, nothing changed."""

from __future__ import annotations

import contextlib
import glob
import os
import selectors
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .evidence import Node, Ran, Space

_FILE_MOST = 1 << 20  # bytes
_OUTPUT_MOST = 4 << 20
_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib/wsl/lib")


def read_file(path: str) -> str | None:
    """A file's text; None where it may not be read. Raises FileNotFoundError alone."""
    try:
        # Not waiting: a pipe in the place of a file would never end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_FILE_MOST).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except (OSError, TypeError):
        return None


def names_in(path: str) -> list[str] | None:
    """The names in a folder; None where it is none or may not be read."""
    try:
        return sorted(os.listdir(path))  # noqa: PTH208
    except OSError:
        return None


def matching(pattern: str) -> list[str]:
    """The paths that a pattern fits."""
    return sorted(glob.glob(pattern))  # noqa: PTH207


def link_end(path: str) -> str:
    """Where a symbolic link ends at last; empty where nothing is there."""
    return os.path.realpath(path) if os.path.exists(path) else ""  # noqa: PTH110


def node_of(path: str) -> Node | None:
    """A device node, which is not opened for that; None where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    if not stat.S_ISCHR(found.st_mode):
        return None
    return Node(
        mode=f"{stat.S_IMODE(found.st_mode):04o}",
        owner=found.st_uid,
        group=found.st_gid,
        major=os.major(found.st_rdev),
        minor=os.minor(found.st_rdev),
        usable=os.access(path, os.R_OK | os.W_OK),
    )


def space_of(path: str) -> Space | None:
    """The file system of a folder, or of the nearest one above it that is there."""
    folder = Path(path)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return Space(free=found.f_bavail * found.f_frsize, size=found.f_blocks * found.f_frsize)


def run(argv: Sequence[str], limit: float, env: Mapping[str, str] = os.environ) -> Ran:
    """Run a command without a shell, in English, for ``limit`` seconds at most.

    A program that hangs in the driver cannot be killed before the driver lets it go: it is left behind.
    """
    folders = [*filter(None, env.get("PATH", "").split(os.pathsep)), *_FOLDERS]
    environment = {**env, "LC_ALL": "C", "PATH": os.pathsep.join(dict.fromkeys(folders))}
    program = argv[0] if "/" in argv[0] else _found(argv[0], folders)
    try:
        process = subprocess.Popen(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return Ran(127 if isinstance(error, FileNotFoundError) else 126, err=error.strerror or "")
    texts, ended = _output(process, time.monotonic() + limit)
    out, err = (text.decode("utf-8", "replace") for text in texts)
    if not ended:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, 9)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        return Ran(124, out, err)
    return Ran(process.returncode, out, err)


def _found(name: str, folders: Sequence[str]) -> str:
    for folder in folders:
        path = Path(folder) / name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return name


def _output(process: subprocess.Popen[bytes], until: float) -> tuple[tuple[bytes, bytes], bool]:
    """What a process prints, and whether it ended in time."""
    assert process.stdout and process.stderr
    texts = {process.stdout: b"", process.stderr: b""}
    with selectors.DefaultSelector() as selector:
        for pipe in texts:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() and (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                piece = os.read(key.fd, 1 << 16)
                if not piece:
                    selector.unregister(key.fileobj)
                for pipe in texts:
                    if pipe is key.fileobj and len(texts[pipe]) < _OUTPUT_MOST:
                        texts[pipe] += piece
    pair = (texts[process.stdout], texts[process.stderr])
    try:
        process.wait(max(0.01, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return pair, False
    finally:
        process.stdout.close()
        process.stderr.close()
    return pair, True


@dataclass(frozen=True)
class Sources:
    """The ways of looking; tests bring their own."""

    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    read: Callable[[str], str | None] = read_file
    names: Callable[[str], list[str] | None] = names_in
    matching: Callable[[str], list[str]] = matching
    link: Callable[[str], str] = link_end
    node: Callable[[str], Node | None] = node_of
    space: Callable[[str], Space | None] = space_of
    run: Callable[[Sequence[str], float], Ran] = run
