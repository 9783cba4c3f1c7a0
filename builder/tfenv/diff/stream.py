"""An image that passes by once: what an engine streams when it saves one."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, cast

from tfenv.errors import IntegrityError
from tfenv.progress import clean

from .layer import BoundedInfo, read_layer
from .layout import Recall, Stored, sha256_of, wrong
from .model import Layer
from .places import JSON_MAX, members, normal

_DOCUMENTS_MAX = 64 << 20  # bytes of all documents


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
                for member in members(tar, where):
                    name = member.name.removeprefix("./")
                    if member.isfile():
                        self._take(tar, member, name, recall)
                    elif member.issym() or member.islnk():
                        links[name] = normal((Path(name).parent / member.linkname).as_posix())
        except tarfile.TarError as error:
            raise wrong(where, clean(str(error))) from None
        for name, target in links.items():
            if target in self._layers:
                self._layers[name] = self._layers[target]

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str, recall: Recall) -> None:
        inner = tar.extractfile(member)
        assert inner is not None
        body = io.BufferedReader(cast(Any, inner), 1 << 16)
        if body.peek(1)[:1] in (b"{", b"["):
            self._documents[name] = body.read(JSON_MAX)
            self._left -= len(self._documents[name])
            if self._left < 0:
                raise wrong(self._where, f"more than {_DOCUMENTS_MAX >> 20} MiB of documents")
            return
        sha256 = sha256_of(name)
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
            raise wrong(self._where, f"{clean(stored.member)[:120]} is missing")
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
