"""The files of an image, layer by layer: what each tar header says, and the hash of the bytes.

Written beside the digests, so that years later a rebuild can be compared file by file without the image.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import zstandard

from tfenv import oci
from tfenv.errors import IntegrityError
from tfenv.whiteouts import hidden, is_mark

_CHUNK = 1 << 20
_LIMIT = 256 << 20  # bytes of a recorded tree, unpacked; a TensorFlow image's takes 5 MB
_KINDS = {
    tarfile.REGTYPE: "file",
    tarfile.AREGTYPE: "file",
    tarfile.DIRTYPE: "folder",
    tarfile.SYMTYPE: "link",
    tarfile.LNKTYPE: "hard link",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
    tarfile.FIFOTYPE: "pipe",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One member of a layer.

    Args:
        path: without ``./`` and slashes at its ends.
        kind: ``file``, ``folder``, ``link``, ``hard link``, ``device``, ``pipe``.
        owner: user and group, as numbers and names: ``0:0`` or ``0:0 root:root``.
        time: Unix seconds, as in the header; size: bytes; sha256: of a file's bytes, hex.
        core: sha256 of the bytes without the time that some formats hold in themselves (.pyc, .gz).
        link: what it points to; device: major and minor number; attributes: extended ones.
    """

    path: str
    kind: str
    mode: int
    owner: str
    time: float
    size: int = 0
    sha256: str = ""
    core: str = ""
    link: str = ""
    device: str = ""
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Tree:
    """The layers of an image, each with its entries in the order of the archive."""

    layers: tuple[tuple[Entry, ...], ...]

    @property
    def digest(self) -> str:
        """``sha256:...`` of the file tree that the layers give, without times."""
        hashed = hashlib.sha256()
        for entry in merged(self.layers).values():
            hashed.update(json.dumps(_plain(replace(entry, time=0))).encode() + b"\n")
        return f"sha256:{hashed.hexdigest()}"


def read_tree(archive: Path) -> Tree:
    """The files of the image in an OCI archive.

    Raises:
        IntegrityError: it is damaged.
    """
    described = oci.describe(archive)
    layers = []
    for layer in described.layers:
        with oci.opened(archive, layer) as stream:
            layers.append(tuple(_entries(stream, str(archive))))
    return Tree(tuple(layers))


def _entries(stream: IO[bytes], where: str) -> Iterator[Entry]:
    try:
        with tarfile.open(fileobj=stream, mode="r|") as layer:
            for member in layer:
                yield _entry(member, layer.extractfile(member) if member.isreg() else None)
    except (tarfile.TarError, zstandard.ZstdError, EOFError, OSError) as error:
        raise IntegrityError(
            f"a layer of {where} cannot be read: {error}",
            remedy="build it again: tfenv build --no-cache CELL",
        ) from error


def _entry(member: tarfile.TarInfo, file: IO[bytes] | None) -> Entry:
    named = f" {member.uname}:{member.gname}" if member.uname or member.gname else ""
    sha256, core = _hashes(file, member.name) if file else ("", "")
    kind = _KINDS.get(member.type, f"type {member.type!r}")
    attributes = ((k, v) for k, v in member.pax_headers.items() if "xattr" in k)
    return Entry(
        path=member.name.removeprefix("./").strip("/"),
        kind=kind,
        mode=member.mode,
        owner=f"{member.uid}:{member.gid}{named}",
        time=member.mtime,
        size=member.size if file else 0,
        sha256=sha256,
        core=core,
        link=member.linkname if member.issym() else member.linkname.removeprefix("./").strip("/"),
        device=f"{member.devmajor}:{member.devminor}" if kind == "device" else "",
        attributes=tuple(sorted(attributes)),
    )


def _hashes(file: IO[bytes], name: str) -> tuple[str, str]:
    """Of all bytes, and of those without the time inside; the second is empty where there is none."""
    whole, core = hashlib.sha256(), hashlib.sha256()
    first = file.read(_CHUNK)
    without = next((cut for ending, cut in _TIMES if name.endswith(ending)), None)
    cut = without(first) if without else None
    if cut is not None:
        core.update(cut)
    chunk = first
    while chunk:
        whole.update(chunk)
        chunk = file.read(_CHUNK)
        if cut is not None:
            core.update(chunk)
    return whole.hexdigest(), core.hexdigest() if cut is not None else ""


def _without_pyc_time(data: bytes) -> bytes | None:
    # PEP 552: magic, flags, and with flags 0 the source's time and size.
    return data[:8] + data[12:] if len(data) >= 16 and data[4:8] == b"\0\0\0\0" else None


def _without_gzip_time(data: bytes) -> bytes | None:
    # RFC 1952: two bytes of magic, method, flags, then the time.
    return data[:4] + data[8:] if data[:2] == b"\x1f\x8b" else None


_TIMES: tuple[tuple[str, Callable[[bytes], bytes | None]], ...] = (
    (".pyc", _without_pyc_time),
    (".gz", _without_gzip_time),
    (".tgz", _without_gzip_time),
)


def merged(layers: Iterable[Iterable[Entry]]) -> dict[str, Entry]:
    """The one file tree that the layers give, by path, sorted; hard links are the files they link to."""
    found: dict[str, Entry] = {}
    for layer in layers:
        entries = list(layer)
        if hides := hidden(entry.path for entry in entries):
            found = {path: entry for path, entry in found.items() if not hides.hides(path)}
        for entry in entries:
            if is_mark(entry.path) or not entry.path:
                continue
            if entry.kind == "hard link" and (target := found.get(entry.link)):
                entry = replace(target, path=entry.path)
            found[entry.path] = entry
    return dict(sorted(found.items()))


def _plain(entry: Entry) -> dict[str, Any]:
    """The fields that say something, sorted by name."""
    values = {name: getattr(entry, name) for name in sorted(Entry.__dataclass_fields__)}
    return {
        name: dict(value) if name == "attributes" else value
        for name, value in values.items()
        if value or name in ("mode", "time")
    }


def dump(tree: Tree) -> bytes:
    """The recorded form: one line of JSON for each layer and entry, compressed by zstd."""
    lines = []
    for number, layer in enumerate(tree.layers):
        lines.append(json.dumps({"layer": number, "entries": len(layer)}))
        lines += [json.dumps(_plain(entry)) for entry in layer]
    return zstandard.ZstdCompressor(level=9).compress(("\n".join(lines) + "\n").encode())


def load(data: bytes) -> Tree:
    """A tree from its recorded form.

    Raises:
        IntegrityError: it is damaged, or far too large.
    """
    layers: list[tuple[Entry, ...]] = []
    try:
        reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
        lines = iter(_lines(reader))
        for line in lines:
            head = json.loads(line)
            layers.append(tuple(_load(json.loads(next(lines))) for _ in range(int(head["entries"]))))
    except (zstandard.ZstdError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _damaged(repr(error)) from None
    except (StopIteration, RuntimeError):
        raise _damaged("it is cut off") from None
    return Tree(tuple(layers))


def _lines(reader: IO[bytes]) -> Iterator[bytes]:
    left, rest = _LIMIT, b""
    while chunk := reader.read(min(_CHUNK, left)):
        left -= len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        if not left:
            raise ValueError(f"it is larger than {_LIMIT} bytes")
    if rest:
        raise ValueError("its last line has no end")


def _load(value: dict[str, Any]) -> Entry:
    notes = {str(k): str(v) for k, v in value.pop("attributes", {}).items()}
    for name, kind in (("mode", int), ("size", int), ("time", (int, float))):
        if not isinstance(value.get(name, 0), kind):
            raise ValueError(f"{name} is no number")
    fields = {"owner": "0:0", **value}
    return Entry(**fields, attributes=tuple(sorted(notes.items())))


def _damaged(why: str) -> IntegrityError:
    return IntegrityError(
        f"the recorded file tree is damaged: {why}", remedy="restore the bundle from another copy"
    )
