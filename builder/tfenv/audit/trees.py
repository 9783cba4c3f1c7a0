"""A wheel's members or an installed folder's files, the same to whoever reads them."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Protocol

from tfenv.errors import IntegrityError, UsageError

# The largest text that is read (cuda.h) has 1.1 MB.
_MOST_TEXT = 1 << 23
# The largest library so far has 1.2 GB.
_MOST_LIBRARY = 1 << 32
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # all that wheels have


#: What zipfile raises, or stumbles over, where a file is no sound zip file.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    IndexError,
    OverflowError,
    RuntimeError,
)


class Tree(Protocol):
    """Files by name, as they lie below site-packages."""

    def sizes(self) -> dict[str, int]:
        """The names of the files, and their size in bytes."""

    def text(self, name: str) -> str:
        """A small file's text. Raises IntegrityError when it is damaged or not small."""

    def mapped(self, name: str) -> AbstractContextManager[mmap.mmap]:
        """A large file's bytes."""


class ZipTree:
    """The members of a wheel.

    Args:
        scratch: folder for what is unpacked while it is read.

    Raises:
        IntegrityError: it is no zip file, or a damaged one.
    """

    def __init__(self, file: IO[bytes], name: str, scratch: Path | None = None) -> None:
        self.name, self.scratch = name, scratch
        with self._sound(""):
            self._zip = zipfile.ZipFile(file)
            self._members = {info.filename: info for info in self._zip.infolist() if info.filename}

    def sizes(self) -> dict[str, int]:
        """In the order in which they lie in the wheel, so that reading goes forward."""
        members = sorted(self._members.values(), key=lambda info: info.header_offset)
        return {info.filename: info.file_size for info in members if not info.is_dir()}

    def text(self, name: str) -> str:
        """The member, after a check of its length and CRC."""
        info = self._members[name]
        if info.file_size > _MOST_TEXT:
            raise self._damaged(name, f"its directory claims {info.file_size} bytes")
        # With a limit: without one, all that lies there is unpacked before its length is compared.
        with self._sound(name), self._zip.open(self._plain(info)) as member:
            return member.read(max(info.file_size, 1)).decode("utf-8", "replace")

    def _plain(self, info: zipfile.ZipInfo) -> zipfile.ZipInfo:
        if info.compress_type not in _METHODS:
            raise self._damaged(info.filename, "it is packed in a way that wheels are not")
        return info

    @contextmanager
    def mapped(self, name: str) -> Iterator[mmap.mmap]:
        """The member, unpacked to a file that has no name and is gone afterwards."""
        info = self._members[name]
        if info.file_size > _MOST_LIBRARY:
            raise self._damaged(name, f"its directory claims {info.file_size} bytes")
        with tempfile.TemporaryFile(dir=self.scratch) as file:
            # zipfile checks the CRC when the last byte is read.
            with self._sound(name), self._zip.open(self._plain(info)) as member:
                shutil.copyfileobj(member, file, 1 << 22)
            file.flush()
            with _map(file, name) as data:
                yield data

    @contextmanager
    def _sound(self, member: str) -> Iterator[None]:
        try:
            yield
        except _DAMAGED as error:
            raise self._damaged(member, str(error)) from error
        except OSError as error:
            if error.errno != errno.EINVAL:  # else: a place before the start of the file
                raise
            raise self._damaged(member, str(error)) from error

    def _damaged(self, member: str, why: str) -> IntegrityError:
        what = f"{member} in {self.name}" if member else self.name
        return IntegrityError(
            f"{what} cannot be read: {why}",
            remedy="the wheel is damaged on its index, or was replaced while it was read: try again",
        )


class FolderTree:
    """What is installed: a site-packages folder, or an unpacked image that has one with TensorFlow.

    Raises:
        UsageError: there is no TensorFlow below that folder, or more than one.
    """

    def __init__(self, folder: Path) -> None:
        self.root = _site_packages(folder)

    def sizes(self) -> dict[str, int]:
        """Files of TensorFlow and of its own metadata."""
        found = {}
        for top in sorted(self.root.glob("tensorflow*")):
            for where, folders, files in os.walk(top):
                folders.sort()
                for file in sorted(files):
                    path = Path(where, file)
                    if path.is_file() and not path.is_symlink():
                        found[str(path.relative_to(self.root))] = path.stat().st_size
        return found

    def text(self, name: str) -> str:
        """The file's text."""
        path = self.root / name
        if path.stat().st_size > _MOST_TEXT:
            raise IntegrityError(f"{path} is no text file", remedy="reinstall TensorFlow")
        return path.read_text("utf-8", "replace")

    @contextmanager
    def mapped(self, name: str) -> Iterator[mmap.mmap]:
        """The file itself."""
        with (self.root / name).open("rb") as file, _map(file, name) as data:
            yield data


def _map(file: IO[bytes], name: str) -> mmap.mmap:
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise IntegrityError(f"{name} is empty", remedy="this TensorFlow is damaged") from error


def _site_packages(folder: Path) -> Path:
    marker = Path("tensorflow", "python", "platform", "build_info.py")
    if (folder / marker).is_file():
        return folder
    found: list[Path] = []
    for where, folders, _ in os.walk(folder):
        if Path(where, marker).is_file():
            found.append(Path(where))
        # proc of a running system never ends, and a link may lead out of an image
        folders[:] = sorted(
            f for f in folders if f not in ("proc", "sys") and not Path(where, f).is_symlink()
        )
    if len(found) == 1:
        return found[0]
    said = f"more than one: {', '.join(map(str, found))}" if found else "none"
    raise UsageError(
        f"looked for a folder with tensorflow/python/platform/build_info.py below {folder}, found {said}",
        remedy="name the site-packages folder itself",
    )
