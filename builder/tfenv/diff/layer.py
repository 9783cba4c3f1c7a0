"""Read one layer as it streams by: its files, their hashes, and the few texts that say what is installed.

The layer may be anybody's: nothing of it is written to disk, and what it may take is bounded.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from typing import IO, Any, cast

from tfenv.errors import IntegrityError
from tfenv.progress import clean

from .model import Entry, Layer

_CHUNK = 1 << 20  # bytes
MOST_ENTRIES = 2_000_000
MOST_BYTES = 200 << 30  # of files in one layer
MOST_NAMES = 256 << 20  # bytes of names and links in one layer; large images have 20 MB
MOST_TEXTS = 64 << 20  # bytes of texts kept of one layer
_TEXT = 256 << 10  # bytes kept of one text
_LISTING = 32 << 20  # bytes kept of a package manager's own list
_HEADER = 1 << 20  # bytes of a long name or an extended header; a path has 4096 at most
_NAME = 4096
_KEPT = re.compile(
    r"var/lib/dpkg/status(?:\.d/[^/]+)?|(?:etc|usr/lib)/os-release|usr/share/doc/[^/]+/copyright"
    r"|(?:.*/)?[^/]+\.(?:dist-info/METADATA|egg-info/PKG-INFO|egg-info)"
)
_VENDORED = re.compile(r"(?:^|/)(?:_vendor|pkgs)/")
_LISTINGS = ("var/lib/dpkg/status",)
_KINDS = {tarfile.DIRTYPE: "d", tarfile.SYMTYPE: "l"}
_LONG = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class BoundedInfo(tarfile.TarInfo):
    """A header that takes no memory at will: tarfile reads extended headers whole."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        if self.type in _LONG and self.size > _HEADER:
            raise tarfile.ReadError(f"an extended header of {self.size} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]


class Counting(io.RawIOBase):
    """A stream that hashes what is read from it."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner
        self._digest = hashlib.sha256()
        self.size = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """As of any stream."""
        data = self._inner.read(size if size >= 0 else _CHUNK)
        self._digest.update(data)
        self.size += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        """As of any stream."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def drain(self) -> str:
        """Read the rest; sha256 in hex of all of it."""
        while self.read(_CHUNK):
            pass
        return self._digest.hexdigest()


def read_layer(stream: IO[bytes], *, sha256: str = "", name: str = "a layer") -> Layer:
    """The layer in ``stream``: a tar, plain or compressed by gzip or zstd.

    Args:
        sha256: in hex, what the stored layer's hash has to be; empty where its name does not say.
        name: what to call it in messages.

    Raises:
        IntegrityError: it is damaged, is not what its hash says, or is beyond all bounds.
    """
    counted = Counting(stream)
    try:
        found = _read(_uncompressed(counted), name)
        actual = counted.drain()
    except (tarfile.TarError, EOFError, ValueError, OSError, OverflowError, _zstd_error()) as error:
        raise _unusable(name, clean(str(error)) or type(error).__name__) from error
    if sha256 and actual != sha256:
        raise _unusable(name, "it does not have its own hash")
    return found


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError


def _unusable(name: str, why: str) -> IntegrityError:
    return IntegrityError(
        f"{name} cannot be read: {why}", remedy="fetch or save the image again; do not trust this copy"
    )


def _uncompressed(stream: Counting) -> IO[bytes]:
    ahead = io.BufferedReader(stream, _CHUNK)
    magic = ahead.peek(4)[:4]
    if magic == b"\x28\xb5\x2f\xfd":
        import zstandard

        # The window of a frame is what the packer wants it to be: more than 128 MiB is refused.
        reader = zstandard.ZstdDecompressor(max_window_size=128 << 20)
        return cast(IO[bytes], reader.stream_reader(ahead, read_size=_CHUNK, read_across_frames=True))
    if magic[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=ahead))
    return cast(IO[bytes], ahead)


def _read(stream: IO[bytes], name: str) -> Layer:
    entries: dict[str, Entry] = {}
    texts: dict[str, str] = {}
    total = kept = names = 0
    note = ""
    with tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK, tarinfo=BoundedInfo) as tar:
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # else tarfile keeps them all
            path = cleaned(member.name)
            if member.size < 0:
                raise ValueError(f"{path} has {member.size} bytes")
            total += member.size
            if len(entries) >= MOST_ENTRIES or total > MOST_BYTES:
                raise _unusable(name, f"more than {MOST_ENTRIES} files or {MOST_BYTES >> 30} GiB")
            if not path:
                continue
            if member.islnk():  # the file has another name, which stands above
                target = cleaned(member.linkname)
                entries[path] = entries.get(target) or Entry("l", member.mode, _owner(member), 0, target)
                continue
            content = cleaned(member.linkname) if member.issym() else ""
            names += len(path) + len(content)
            if names > MOST_NAMES:
                raise _unusable(name, f"more than {MOST_NAMES >> 20} MiB of names")
            if member.isreg():
                limit = wanted(path)
                limit = limit if kept + min(limit, member.size) <= MOST_TEXTS else 0
                content, text = _content(tar, member, limit)
                if limit and text:
                    kept += len(text)
                    texts[path] = text.decode("utf-8", "replace")
                elif wanted(path) and not limit:
                    note = f"{name} holds more lists of packages than are read"
            kind = _KINDS.get(member.type, "f" if member.isreg() else "o")
            size = member.size if member.isreg() else 0
            entries[path] = Entry(kind, member.mode, _owner(member), size, content)
    return Layer(entries, texts, total, note)


def wanted(path: str) -> int:
    """How many bytes of a file to keep as text; 0 for most."""
    if not _KEPT.fullmatch(path) or _VENDORED.search(path):
        return 0
    return _LISTING if path in _LISTINGS else _TEXT


def cleaned(name: str) -> str:
    """A member's name as a path in the image: relative, without what would drive a terminal."""
    parts = (part for part in clean(name.encode("utf-8", "replace").decode()).split("/"))
    return "/".join(part.replace("\n", "") for part in parts if part not in ("", "."))[:_NAME]


def _owner(member: tarfile.TarInfo) -> str:
    return f"{member.uid}:{member.gid}"


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo, keep: int) -> tuple[str, bytes]:
    """sha256 in hex of a file, and its first ``keep`` bytes."""
    file = tar.extractfile(member)
    assert file is not None
    digest, text, left = hashlib.sha256(), b"", keep
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        if left > 0:
            text += chunk[:left]
            left = keep - len(text)
    return digest.hexdigest(), text
