"""Write to a folder of snapshots: blobs aside and then renamed, the index last.

A kill at any moment leaves the folder whole.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tfenv.errors import IntegrityError, NotReadyError, TfenvError, UsageError
from tfenv.files import sync
from tfenv.store import hash_file

from . import names
from .format import INDEX
from .layout import Layout

_CHUNK = 1 << 20
_VERSION = {"imageLayoutVersion": "1.0.0"}
_OWN = frozenset({"oci-layout", "index.json", "blobs", ".lock", ".tmp"})


@contextmanager
def writing(layout: Layout) -> Iterator[Writer]:
    """Hold the folder against other writers; make it, or take it as it is.

    Raises:
        UsageError: it holds something else. NotReadyError: it cannot be written.
    """
    with not_ready(layout.root):
        _claim(layout.root)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.fdopen(os.open(layout.root / ".lock", flags, 0o644), "r+")
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                layout.say(f"waiting for another tfenv that writes to {layout.root}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            writer = Writer(layout)
            writer.clean()
            yield writer
        finally:
            lock.close()


def _claim(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    found = {path.name for path in root.iterdir()}
    if not found <= _OWN and "oci-layout" not in found:
        raise UsageError(
            f"{root} holds other files: {', '.join(sorted(found - _OWN)[:3])}",
            remedy="name a new folder, or one of snapshots",
        )
    for folder in (root / "blobs", root / "blobs" / "sha256", root / ".tmp"):
        if folder.is_symlink():
            raise UsageError(f"{folder} is a link", remedy="name a folder whose blobs lie in itself")
        folder.mkdir(parents=True, exist_ok=True)


class Writer:
    """Puts blobs into a layout, and last of all the index; made by ``writing``.

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
        """Like ``put_file``, of bytes that come one after the other.

        Args:
            name: what to call them in messages.

        Raises:
            IntegrityError: they have another hash; nothing is kept.
        """
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
        return found.st_size if hash_file(path) == sha256 else None

    def publish(self, entries: list[dict[str, Any]]) -> None:
        """Make these descriptors the folder's: everything that they name is on the disk by then."""
        root = self._layout.root
        sync(root / "blobs" / "sha256")
        if not (root / "oci-layout").is_file():
            self._replace(root / "oci-layout", _VERSION)
        self._replace(root / "index.json", {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})
        sync(root)

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
