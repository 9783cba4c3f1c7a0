"""A folder of snapshots: an OCI image layout with every blob once; a kill at any moment leaves it whole.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tfenv.errors import IntegrityError, NotReadyError, TfenvError, UsageError

from . import names
from .format import ARTIFACT, CELL, INDEX, MANIFEST, TITLE

_CHUNK = 1 << 20
_JSON_MAX = 16 << 20  # bytes; a manifest of 300 files is 100 kB
_OWN = frozenset({"oci-layout", "index.json", "blobs", ".lock", ".tmp"})
_VERSION = {"imageLayoutVersion": "1.0.0"}


@dataclass(frozen=True, kw_only=True)
class Blob:
    """A blob as a manifest describes it; ``size`` in bytes."""

    digest: str
    size: int
    media_type: str
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The path of the file, relative to the snapshot; empty where the manifest gives none."""
        return self.annotations.get(TITLE, "")

    def plain(self) -> dict[str, Any]:
        """The descriptor as JSON has it."""
        found: dict[str, Any] = {"mediaType": self.media_type, "digest": self.digest, "size": self.size}
        return {**found, "annotations": dict(self.annotations)} if self.annotations else found


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A snapshot's manifest: its descriptor, its document and the files, each once."""

    blob: Blob
    document: Blob
    files: tuple[Blob, ...]
    data: bytes

    @property
    def by_title(self) -> dict[str, Blob]:
        """The files by their path."""
        return {file.title: file for file in self.files}


class Layout:
    """Snapshots in ``root``."""

    def __init__(self, root: Path, *, say: Callable[[str], None] | None = None) -> None:
        self.root = root
        self._say = say or (lambda message: print(message, file=sys.stderr))

    def path(self, digest: str) -> Path:
        """Where a blob is, or would be."""
        return self.root / "blobs" / "sha256" / names.digest(digest, where=str(self.root))[7:]

    def open(self, blob: Blob) -> IO[bytes]:
        """A blob to read: a plain file of the right size; its bytes are not looked at.

        Raises:
            IntegrityError: it is missing, cut off, or a link or device.
        """
        return open_plain(self.path(blob.digest), blob, at=self.root)

    def read(self, blob: Blob, limit: int = _JSON_MAX) -> bytes:
        """All bytes of a small blob, checked by hash.

        Raises:
            IntegrityError: they are others, or more than ``limit``.
        """
        if blob.size > limit:
            raise IntegrityError(
                f"{blob.digest} has {blob.size} bytes, which is too many", remedy=names.HOSTILE
            )
        with self.open(blob) as file:
            data = file.read(limit + 1)
        if _digest(data) != blob.digest:
            raise IntegrityError(f"{blob.digest} in {self.root} was changed", remedy=_restore(self.root))
        return data

    # reading

    def index(self) -> list[dict[str, Any]]:
        """The descriptors of index.json.

        Raises:
            UsageError: the folder is none of snapshots. IntegrityError: it is damaged.
        """
        if not (self.root / "oci-layout").is_file() or not (self.root / "index.json").is_file():
            raise UsageError(
                f"{self.root} is no folder of snapshots", remedy="make one: tfenv archive CELL --to DIR"
            )
        for folder in (self.root / "blobs", self.root / "blobs" / "sha256"):
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                raise IntegrityError(f"{folder} is no folder of its own", remedy=names.HOSTILE)
        if _json(self.root / "oci-layout").get("imageLayoutVersion") != "1.0.0":
            raise IntegrityError(f"{self.root}: oci-layout names another version", remedy=_restore(self.root))
        found = _json(self.root / "index.json").get("manifests")
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise IntegrityError(
                f"{self.root}/index.json holds no list of snapshots", remedy=_restore(self.root)
            )
        return found

    def snapshots(self) -> tuple[Blob, ...]:
        """The snapshots in the folder, in the order in which they were archived; images are none."""
        found = (described(one, where=f"{self.root}/index.json") for one in self.index())
        return tuple(blob for blob in found if blob.media_type == MANIFEST and CELL in blob.annotations)

    def manifest(self, blob: Blob) -> Manifest:
        """A snapshot's manifest, every name in it checked.

        Raises:
            IntegrityError: it is missing, changed, or names files outside of its folder.
        """
        return parse_manifest(self.read(blob), blob, where=f"{self.root}: {blob.digest[:19]}")

    # writing

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Hold the folder against other writers; make it, or take it as it is.

        Raises:
            UsageError: it holds something else. NotReadyError: it cannot be written.
        """
        with not_ready(self.root):
            self._claim()
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            lock = os.fdopen(os.open(self.root / ".lock", flags, 0o644), "r+")
            try:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self._say(f"waiting for another tfenv that writes to {self.root}")
                    fcntl.flock(lock, fcntl.LOCK_EX)
                writer = Writer(self)
                writer.clean()
                yield writer
            finally:
                lock.close()

    def _claim(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        found = {path.name for path in self.root.iterdir()}
        if not found <= _OWN and "oci-layout" not in found:
            raise UsageError(
                f"{self.root} holds other files: {', '.join(sorted(found - _OWN)[:3])}",
                remedy="name a new folder, or one of snapshots",
            )
        for folder in (self.root / "blobs", self.root / "blobs" / "sha256", self.root / ".tmp"):
            if folder.is_symlink():
                raise UsageError(f"{folder} is a link", remedy="name a folder whose blobs lie in itself")
            folder.mkdir(parents=True, exist_ok=True)


class Writer:
    """Puts blobs into a layout, and last of all the index; made by ``Layout.writing``.

    ``added`` counts the bytes that were not there before.
    """

    def __init__(self, layout: Layout) -> None:
        self.added = 0
        self._layout = layout
        self._tmp = layout.root / ".tmp"

    def clean(self) -> None:
        """Remove what a killed writer has left: the lock is held, so nobody else writes."""
        for path in self._tmp.iterdir():
            path.unlink()

    def put_file(self, file: Path, sha256: str = "") -> tuple[str, int]:
        """Copy a file in; return its digest and size.

        Args:
            sha256: what it has to have, where that is known.

        Raises:
            IntegrityError: it has another hash; nothing is kept.
        """
        with file.open("rb") as source:
            return self.put(iter(lambda: source.read(_CHUNK), b""), sha256, name=file.name)

    def put(self, chunks: Iterator[bytes], sha256: str = "", *, name: str = "") -> tuple[str, int]:
        """Like ``put_file``, of bytes that come one after the other."""
        if sha256 and (size := self._whole(sha256)) is not None:
            return f"sha256:{sha256}", size
        handle, temporary = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=self._tmp)
        aside = Path(temporary)
        try:
            hashed, size = hashlib.sha256(), 0
            with os.fdopen(handle, "wb") as target:
                for chunk in chunks:
                    hashed.update(chunk)
                    size += len(chunk)
                    target.write(chunk)
                target.flush()
                os.fsync(target.fileno())
            found = hashed.hexdigest()
            if sha256 and found != sha256:
                raise IntegrityError(
                    f"{name}: its sha256 is {found}, expected {sha256}",
                    remedy="remove the file and have it fetched anew; nothing was archived",
                )
            if self._whole(found) is None:  # a damaged blob is replaced by a whole one
                aside.chmod(0o644)
                aside.replace(self._layout.path(f"sha256:{found}"))
                self.added += size
        finally:
            aside.unlink(missing_ok=True)
        return f"sha256:{found}", size

    def put_bytes(self, data: bytes) -> tuple[str, int]:
        """Put a small blob in."""
        return self.put(iter([data]))

    def _whole(self, sha256: str) -> int | None:
        """The size of a blob that is there with its own hash."""
        path = self._layout.path(f"sha256:{sha256}")
        try:
            found = path.lstat()
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise IntegrityError(f"{path} is no plain file", remedy=names.HOSTILE)
        hashed = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                hashed.update(chunk)
        return found.st_size if hashed.hexdigest() == sha256 else None

    def publish(self, entries: list[dict[str, Any]]) -> None:
        """Make these descriptors the folder's: everything that they name is on the disk by then."""
        root = self._layout.root
        _sync(root / "blobs" / "sha256")
        if not (root / "oci-layout").is_file():
            self._replace(root / "oci-layout", _VERSION)
        self._replace(root / "index.json", {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})
        _sync(root)

    def entries(self) -> list[dict[str, Any]]:
        """The descriptors that are there now; none in a new folder."""
        both = [(self._layout.root / name).is_file() for name in ("oci-layout", "index.json")]
        if not all(both):
            return []
        self._layout.snapshots()  # a damaged index is not written over
        return self._layout.index()

    def _replace(self, path: Path, value: Mapping[str, Any]) -> None:
        aside = self._tmp / f"{os.getpid()}-{path.name}"
        try:
            with aside.open("w", encoding="utf-8") as file:
                file.write(json.dumps(value, indent=1, sort_keys=True) + "\n")
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)


def described(value: Mapping[str, Any], *, where: str) -> Blob:
    """A descriptor of JSON, checked.

    Raises:
        IntegrityError: it is none.
    """
    size, kind = value.get("size"), value.get("mediaType")
    notes = value.get("annotations") or {}
    good = isinstance(notes, dict) and all(isinstance(text, str) for text in notes.values())
    if type(size) is not int or size < 0 or not isinstance(kind, str) or not good:
        raise IntegrityError(f"{where}: a descriptor is damaged", remedy=names.HOSTILE)
    digest = names.digest(value.get("digest"), where=where)
    return Blob(digest=digest, size=size, media_type=kind, annotations=notes)


def parse_manifest(data: bytes, blob: Blob, *, where: str) -> Manifest:
    """A snapshot's manifest from its bytes.

    Raises:
        IntegrityError: it is none, or a name in it leads out of its folder.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    layers = value.get("layers") if isinstance(value, dict) else None
    if (
        not isinstance(value, dict)
        or not isinstance(layers, list)
        or not isinstance(value.get("config"), dict)
    ):
        raise IntegrityError(f"{where} is no manifest", remedy=names.HOSTILE)
    document = described(value["config"], where=where)
    if document.media_type != ARTIFACT:
        raise UsageError(
            f"{where} is no snapshot of tfenv, but {document.media_type}",
            remedy="name a snapshot that `tfenv archive` has made",
        )
    files = tuple(described(one if isinstance(one, dict) else {}, where=where) for one in layers)
    names.together((names.title(file.title, where=where) for file in files), where=where)
    return Manifest(blob=blob, document=document, files=files, data=data)


def open_plain(path: Path, blob: Blob, *, at: object) -> IO[bytes]:
    """A blob's file, which is a plain one of the right size.

    Raises:
        IntegrityError: it is missing, cut off, or something else than a file.
    """
    said = f"{blob.title} ({blob.digest})" if blob.title else blob.digest
    try:
        # Without O_NONBLOCK the open of a pipe would wait for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise IntegrityError(f"{said} is missing in {at}", remedy=_restore(at)) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise IntegrityError(f"{said} in {at} is no plain file", remedy=names.HOSTILE) from None
        raise
    file = os.fdopen(handle, "rb")
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        file.close()
        raise IntegrityError(f"{said} in {at} is no plain file", remedy=names.HOSTILE)
    if found.st_size != blob.size:
        file.close()
        raise IntegrityError(
            f"{said} in {at} has {found.st_size} bytes, not {blob.size}", remedy=_restore(at)
        )
    return file


@contextmanager
def not_ready(where: Path) -> Iterator[None]:
    """A full disk, or a folder that cannot be written, as NotReadyError."""
    try:
        yield
    except TfenvError:
        raise
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise NotReadyError(
            f"cannot write to {where}: {error.strerror or error}",
            remedy="free space, or name another folder; the snapshots that were there are untouched",
        ) from error


def _restore(at: object) -> str:
    return f"restore it from another copy of the bundle; what else is wrong: tfenv archive --verify {at}"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(_JSON_MAX))
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"{path} is damaged: {error}", remedy=_restore(path.parent)) from None
    if not isinstance(value, dict):
        raise IntegrityError(f"{path} is damaged: it is no object", remedy=_restore(path.parent))
    return value


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
