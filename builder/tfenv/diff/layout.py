"""Find the image in an OCI layout: a folder, an archive, or what an engine streams; nothing is unpacked.

Archives of ``docker save`` from engines before 25, which have no index.json, are read too.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

from tfenv.errors import IntegrityError, UsageError
from tfenv.progress import clean

from .layer import BoundedInfo, read_layer
from .model import Layer

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_BLOB = re.compile(r"(?:\./)?blobs/sha256/([0-9a-f]{64})")
_JSON_MAX = 16 << 20  # bytes
_DOCUMENTS_MAX = 64 << 20  # bytes of all documents of a stream
_MOST_LAYERS = 1024
_MOST_MEMBERS = 1_000_000
_REFERENCE = "org.opencontainers.image.ref.name"
_PLATFORM = {"os": "linux", "architecture": "amd64"}
#: Gives a layer by key, from what was read before, or reads it.
Recall = Callable[[str, Callable[[], Layer]], Layer]


@dataclass(frozen=True)
class Stored:
    """A layer as the manifest names it: ``member`` is a name in the layout. ``size``: bytes as stored."""

    member: str
    sha256: str
    size: int | None


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image and its layers, read.

    Args:
        digest: of the manifest; empty in archives that have none.
        config: the image's configuration as it is stored.
    """

    digest: str
    config: Mapping[str, Any]
    stored: tuple[Stored, ...]
    layers: tuple[Layer, ...]


class Place(Protocol):
    """Where the parts of an image lie, by name."""

    def document(self, name: str) -> bytes | None:
        """A small file's bytes, None where there is none."""
        ...

    def layer(self, stored: Stored, name: str) -> Layer:
        """A layer, read."""
        ...


def read_image(place: Place, where: str, reference: str = "", recall: Recall | None = None) -> Image:
    """The image in a layout.

    Args:
        reference: name or digest of the image, where there are several; where: what to call the layout.

    Raises:
        IntegrityError: something is missing or damaged. UsageError: several images, and none is named.
    """
    recall = recall or (lambda _, make: make())
    digest, config, stored = _resolve(place, where, reference)
    if len(stored) > _MOST_LAYERS:
        raise _wrong(where, f"it has {len(stored)} layers")
    by_member = {of.member: of for of in stored}

    def read(of: Stored) -> Layer:
        name = f"layer {of.sha256[:12] or of.member} of {where}"
        return recall(of.sha256, lambda: place.layer(of, name)) if of.sha256 else place.layer(of, name)

    with ThreadPoolExecutor(2) as pool:  # hashing and decompressing leave Python's lock
        order = sorted(by_member.values(), key=lambda of: of.size or 0, reverse=True)
        found = dict(zip((of.member for of in order), pool.map(read, order), strict=True))
    return Image(digest=digest, config=config, stored=stored, layers=tuple(found[of.member] for of in stored))


def _resolve(place: Place, where: str, reference: str) -> tuple[str, Mapping[str, Any], tuple[Stored, ...]]:
    if place.document("index.json") is None:
        return _resolve_old(place, where, reference)
    index = _object(place, "index.json", where)
    descriptor = _chosen(place, index, where, reference)
    digest = str(descriptor.get("digest"))
    manifest = _object(place, _member(digest, where), where)
    config = _object(place, _member(_dict(manifest.get("config"), where).get("digest"), where), where)
    stored = []
    for layer in _list(manifest.get("layers"), where):
        member = _member(_dict(layer, where).get("digest"), where)
        size = layer.get("size")
        stored.append(Stored(member, member.rsplit("/", 1)[-1], size if type(size) is int else None))
    return digest, config, tuple(stored)


def _chosen(place: Place, index: Mapping[str, Any], where: str, reference: str, deep: int = 0) -> Any:
    """The one descriptor that is meant; an index in the index is gone into."""
    if deep > 4:
        raise _wrong(where, "its indexes lie in each other without end")
    found = [_dict(of, where) for of in _list(index.get("manifests"), where)]
    found = [
        of for of in found if _dict(of.get("platform") or {}, where).get("os") != "unknown"
    ]  # attestation
    if reference:
        named = [of for of in found if reference in (of.get("digest"), _name(of))]
        if not named:
            names = ", ".join(clean(str(_name(of) or of.get("digest"))) for of in found[:5])
            raise UsageError(f"{where} has no image {reference}", remedy=f"it has: {names or 'none'}")
        found = named
    distinct = {str(of.get("digest")): of for of in found}
    if len(distinct) > 1:
        fitting = {key: of for key, of in distinct.items() if _fits(of)}
        distinct = fitting if len(fitting) == 1 else distinct
    if not distinct:
        raise _wrong(where, "it holds no image")
    if len(distinct) > 1:
        names = ", ".join(clean(str(_name(of) or key)) for key, of in list(distinct.items())[:5])
        raise UsageError(f"{where} holds several images: {names}", remedy=f"name one: {where}@NAME")
    (descriptor,) = distinct.values()
    if "index" in str(descriptor.get("mediaType")) or "manifest.list" in str(descriptor.get("mediaType")):
        inner = _object(place, _member(descriptor.get("digest"), where), where)
        return _chosen(place, inner, where, "", deep + 1)
    return descriptor


def _name(descriptor: Mapping[str, Any]) -> Any:
    return (descriptor.get("annotations") or {}).get(_REFERENCE)


def _fits(descriptor: Mapping[str, Any]) -> bool:
    platform = descriptor.get("platform") or {}
    return all(platform.get(key) == value for key, value in _PLATFORM.items())


def _resolve_old(
    place: Place, where: str, reference: str
) -> tuple[str, Mapping[str, Any], tuple[Stored, ...]]:
    data = place.document("manifest.json")
    if data is None:
        raise _wrong(where, "it is no OCI layout and no archive of an image")
    images = [_dict(of, where) for of in _list(_parsed(data, "manifest.json", where), where)]
    named = [of for of in images if not reference or reference in (of.get("RepoTags") or ())]
    if len(named) != 1:
        tags = ", ".join(clean(str(tag)) for of in images[:5] for tag in of.get("RepoTags") or ("?",))
        raise UsageError(f"{where} holds {len(images)} images: {tags}", remedy=f"name one: {where}@NAME")
    config = _object(place, str(named[0].get("Config")), where)
    members = [str(name) for name in _list(named[0].get("Layers"), where)]
    return "", config, tuple(Stored(name, _sha256_of(name), None) for name in members)


def _sha256_of(member: str) -> str:
    found = _BLOB.fullmatch(member)
    return found[1] if found else ""


def _member(digest: object, where: str) -> str:
    found = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if found is None:
        raise _wrong(where, f"{clean(repr(digest))[:80]} is no sha256 digest")
    return f"blobs/sha256/{found[1]}"


def _object(place: Place, name: str, where: str) -> dict[str, Any]:
    data = place.document(name)
    if data is None:
        raise _wrong(where, f"{clean(name)[:120]} is missing")
    if (wanted := _sha256_of(name)) and hashlib.sha256(data).hexdigest() != wanted:
        raise _wrong(where, f"{name} does not have its own hash")
    return _dict(_parsed(data, name, where), where)


def _parsed(data: bytes, name: str, where: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise _wrong(where, f"{clean(name)[:120]} is not JSON") from None


def _dict(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, "a part of it is no JSON object")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(where, "a part of it is no JSON list")
    return value


def _wrong(where: str, why: str) -> IntegrityError:
    return IntegrityError(
        f"{where} is not a usable image: {why}", remedy="save the image again, or name another"
    )


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
            return stream.read(_JSON_MAX)

    def layer(self, stored: Stored, name: str) -> Layer:
        """See Place."""
        path = self._file(stored.member)
        if path is None:
            raise _wrong(str(self._path), f"{clean(stored.member)[:120]} is missing")
        with path.open("rb") as stream:
            return read_layer(stream, sha256=stored.sha256, name=name)


class Archive:
    """A tar of an OCI layout, or of ``docker save``, that can be read at any place; ``members`` by name."""

    def __init__(self, path: Path, tar: tarfile.TarFile) -> None:
        self._path = path
        self.members: dict[str, tarfile.TarInfo] = {}
        for number, member in enumerate(tar):
            if number >= _MOST_MEMBERS:
                raise _wrong(str(path), f"it has more than {_MOST_MEMBERS} members")
            if member.isfile():
                self.members[member.name.removeprefix("./")] = member
            elif member.issym() or member.islnk():  # old engines store a layer that two images share once
                target = (Path(member.name).parent / member.linkname).as_posix()
                if aim := self.members.get(_normal(target)):
                    self.members[member.name.removeprefix("./")] = aim

    def document(self, name: str) -> bytes | None:
        """See Place."""
        member = self.members.get(name)
        if member is None:
            return None
        with self._path.open("rb") as stream:
            stream.seek(member.offset_data)
            return stream.read(min(member.size, _JSON_MAX))

    def layer(self, stored: Stored, name: str) -> Layer:
        """See Place."""
        member = self.members.get(stored.member)
        if member is None:
            raise _wrong(str(self._path), f"{clean(stored.member)[:120]} is missing")
        with self._path.open("rb") as stream:
            stream.seek(member.offset_data)
            return read_layer(cast("IO[bytes]", Part(stream, member.size)), sha256=stored.sha256, name=name)


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


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
        IntegrityError: it is no tar.
    """
    try:
        with tarfile.open(path, "r:", tarinfo=BoundedInfo) as tar:
            yield Archive(path, tar)
    except tarfile.TarError as error:
        raise _wrong(str(path), clean(str(error))) from None


class Streamed:
    """What an engine streams: read once, from the front to the end, whatever the order of its parts."""

    def __init__(self, chunks: Iterable[bytes], where: str, recall: Recall) -> None:
        self._documents: dict[str, bytes] = {}
        self._layers: dict[str, Layer] = {}
        self._broken: dict[str, IntegrityError] = {}
        self._where = where
        self._left = _DOCUMENTS_MAX
        links: dict[str, str] = {}
        stream = io.BufferedReader(_Chunks(chunks), 1 << 20)
        try:
            with tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 20, tarinfo=BoundedInfo) as tar:
                for number, member in enumerate(tar):
                    if number >= _MOST_MEMBERS:
                        raise _wrong(where, f"it has more than {_MOST_MEMBERS} members")
                    name = member.name.removeprefix("./")
                    if member.isfile():
                        self._take(tar, member, name, recall)
                    elif member.issym() or member.islnk():
                        links[name] = _normal((Path(name).parent / member.linkname).as_posix())
        except tarfile.TarError as error:
            raise _wrong(where, clean(str(error))) from None
        for name, target in links.items():
            if target in self._layers:
                self._layers[name] = self._layers[target]

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str, recall: Recall) -> None:
        inner = tar.extractfile(member)
        assert inner is not None
        body = io.BufferedReader(cast(Any, inner), 1 << 16)
        if body.peek(1)[:1] in (b"{", b"["):
            self._documents[name] = body.read(_JSON_MAX)
            self._left -= len(self._documents[name])
            if self._left < 0:
                raise _wrong(self._where, f"more than {_DOCUMENTS_MAX >> 20} MiB of documents")
            return
        sha256 = _sha256_of(name)
        if not sha256 and not name.endswith("layer.tar"):
            return  # version files and the like

        def make() -> Layer:
            return read_layer(cast("IO[bytes]", body), sha256=sha256, name=f"{name} of {self._where}")

        try:
            self._layers[name] = recall(sha256, make) if sha256 else make()
        except IntegrityError as error:
            self._broken[name] = error  # perhaps no layer of the image that is meant

    def document(self, name: str) -> bytes | None:
        """See Place."""
        return self._documents.get(name)

    def layer(self, stored: Stored, name: str) -> Layer:  # noqa: ARG002  (read already)
        """See Place."""
        if stored.member in self._broken:
            raise self._broken[stored.member]
        if stored.member not in self._layers:
            raise _wrong(self._where, f"{clean(stored.member)[:120]} is missing")
        return self._layers[stored.member]


class _Chunks(io.RawIOBase):
    """Pieces as a stream."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest:
            piece = next(self._chunks, None)
            if piece is None:
                return 0
            self._rest = piece
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count
