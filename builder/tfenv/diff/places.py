"""An image that can be read at any place: a folder, or an archive; nothing is unpacked."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from tfenv.errors import UsageError
from tfenv.progress import clean

from .layer import BoundedInfo, read_layer
from .layout import Stored, wrong
from .model import Layer

JSON_MAX = 16 << 20  # bytes of one document
_MOST_MEMBERS = 1_000_000


class Folder:
    """An OCI layout in a folder; links in it are not followed out of it."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()

    def _file(self, name: str) -> Path | None:
        path = (self._path / name).resolve()
        return path if path.is_relative_to(self._path) and path.is_file() else None

    def document(self, name: str) -> bytes | None:
        """See Place."""
        path = self._file(name)
        if path is None:
            return None
        with path.open("rb") as stream:
            return stream.read(JSON_MAX)

    def layer(self, stored: Stored, name: str) -> Layer:
        """See Place."""
        path = self._file(stored.member)
        if path is None:
            raise wrong(str(self._path), f"{clean(stored.member)[:120]} is missing")
        with path.open("rb") as stream:
            return read_layer(stream, sha256=stored.sha256, name=name)


class Archive:
    """A tar of an OCI layout, or of ``docker save``, that can be read at any place; ``members`` by name."""

    def __init__(self, path: Path, tar: tarfile.TarFile) -> None:
        self._path = path
        self.members: dict[str, tarfile.TarInfo] = {}
        for member in members(tar, str(path)):
            if member.isfile():
                self.members[member.name.removeprefix("./")] = member
            elif member.issym() or member.islnk():  # old engines store a layer that two images share once
                target = (Path(member.name).parent / member.linkname).as_posix()
                if aim := self.members.get(normal(target)):
                    self.members[member.name.removeprefix("./")] = aim

    def document(self, name: str) -> bytes | None:
        """See Place."""
        member = self.members.get(name)
        if member is None:
            return None
        with self._path.open("rb") as stream:
            stream.seek(member.offset_data)
            return stream.read(min(member.size, JSON_MAX))

    def layer(self, stored: Stored, name: str) -> Layer:
        """See Place."""
        member = self.members.get(stored.member)
        if member is None:
            raise wrong(str(self._path), f"{clean(stored.member)[:120]} is missing")
        with self._path.open("rb") as stream:
            stream.seek(member.offset_data)
            return read_layer(cast("IO[bytes]", Part(stream, member.size)), sha256=stored.sha256, name=name)


class Part(io.RawIOBase):
    """The next ``left`` bytes of a stream, which may go on after them."""

    def __init__(self, stream: IO[bytes], left: int) -> None:
        self._stream, self._left = stream, left

    def read(self, size: int = -1, /) -> bytes:
        """As of any stream."""
        data = self._stream.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(data)
        return data


@contextmanager
def archive(path: Path) -> Iterator[Archive]:
    """The archive at ``path``, opened.

    Raises:
        IntegrityError: it is no tar. UsageError: it is no plain file.
    """
    if not path.is_file():  # the open of a pipe would wait for ever
        raise UsageError(f"{path} is no plain file", remedy="name an archive: docker save IMAGE -o FILE")
    try:
        with tarfile.open(path, "r:", tarinfo=BoundedInfo) as tar:
            yield Archive(path, tar)
    except tarfile.TarError as error:
        raise wrong(str(path), clean(str(error))) from None


def members(tar: tarfile.TarFile, where: str) -> Iterator[tarfile.TarInfo]:
    """The members of a tar.

    Raises:
        IntegrityError: there are too many; ``where``: what to call it.
    """
    for number, member in enumerate(tar):
        if number >= _MOST_MEMBERS:
            raise wrong(where, f"it has more than {_MOST_MEMBERS} members")
        yield member


def normal(path: str) -> str:
    """A path within the layout without ``.`` and ``..``; never above it."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
