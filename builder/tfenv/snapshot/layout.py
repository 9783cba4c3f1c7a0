"""A folder of snapshots, to read: an OCI image layout with every blob once.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from tfenv.errors import IntegrityError, UsageError

from . import names
from .descriptors import Blob, Manifest, described, open_plain, parse_manifest, restore_remedy
from .format import CELL, MANIFEST

_JSON_MAX = 16 << 20  # bytes; a manifest of 300 files is 100 kB


class Layout:
    """Snapshots in ``root``.

    Args:
        say: where writers say that they wait for others (stderr by default).
    """

    def __init__(self, root: Path, *, say: Callable[[str], None] | None = None) -> None:
        self.root = root
        self.say = say or (lambda message: print(message, file=sys.stderr))

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
            raise IntegrityError(
                f"{blob.digest} in {self.root} was changed", remedy=restore_remedy(self.root)
            )
        return data

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
            raise IntegrityError(
                f"{self.root}: oci-layout names another version", remedy=restore_remedy(self.root)
            )
        found = _json(self.root / "index.json").get("manifests")
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise IntegrityError(
                f"{self.root}/index.json holds no list of snapshots", remedy=restore_remedy(self.root)
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


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(_JSON_MAX))
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"{path} is damaged: {error}", remedy=restore_remedy(path.parent)) from None
    if not isinstance(value, dict):
        raise IntegrityError(f"{path} is damaged: it is no object", remedy=restore_remedy(path.parent))
    return value
