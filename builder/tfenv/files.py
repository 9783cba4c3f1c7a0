"""Files as all use them: read within bounds, hashed, and written all or none."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tfenv.errors import NotReadyError, UsageError

LOCK_NAME = "lock.json"
_HEAD = 1 << 16
_CHUNK = 1 << 20
LINES_MOST = 256 << 20  # bytes of what a program printed in a day, with a look at eight GPUs each second


def read_text(path: Path, most: int) -> str:
    """The text of a file that the user named, which may be a pipe; what is no UTF-8 is replaced.

    A carriage return before a line feed, as of Windows, is left out.

    Args:
        most: bytes, as devices and pipes need not end.

    Raises:
        UsageError: it cannot be read, is no text, or longer.
    """
    try:
        with path.open("rb") as file:
            data = file.read(min(most, _HEAD))
            if b"\0" in data:
                raise UsageError(f"{path} is no text", remedy="is it the right file? save it as UTF-8")
            data += file.read(most + 1 - len(data))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}", remedy="name a file that you may read"
        ) from error
    if len(data) > most:
        raise UsageError(f"{path} has more than {most} bytes", remedy="is it the right file?")
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def sha256_of(stream: IO[bytes]) -> str:
    """sha256 in hex of all that is still to be read from a stream."""
    hashed = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        hashed.update(chunk)
    return hashed.hexdigest()


def sync(path: Path) -> None:
    """Have the system write a file, or what a folder holds, to the disk now."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def own_sizes(folder: Path) -> list[int]:
    """Bytes of each file below a folder, but for those that are also somewhere else by another name."""
    found = (path.lstat() for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return [told.st_size for told in found if told.st_nlink == 1]


def write_all(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write each file, a text as UTF-8, under a temporary name, then rename them all.

    Raises:
        NotReadyError: the folder cannot be written; the old files are untouched.
    """
    aside = {folder / name: folder / f".{name}.{os.getpid()}.tmp" for name in files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for target, temporary in aside.items():
            told = files[target.name]
            with temporary.open("wb") as file:
                file.write(told.encode("utf-8") if isinstance(told, str) else told)
                file.flush()
                os.fsync(file.fileno())
        for target, temporary in aside.items():
            temporary.replace(target)
    except OSError as error:
        raise NotReadyError(
            f"cannot write to {folder}: {error.strerror or error}",
            remedy="free space or change the folder's permissions; the old files are untouched",
        ) from error
    finally:
        for temporary in aside.values():
            with contextlib.suppress(OSError):  # as where the folder is none
                temporary.unlink()
