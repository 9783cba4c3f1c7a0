"""Descriptors and manifests of bundles, read from bytes that somebody else may have written."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tfenv.errors import IntegrityError, UsageError

from . import names
from .format import ARTIFACT, TITLE


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
        raise IntegrityError(f"{said} is missing in {at}", remedy=restore_remedy(at)) from None
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
            f"{said} in {at} has {found.st_size} bytes, not {blob.size}", remedy=restore_remedy(at)
        )
    return file


def restore_remedy(at: object) -> str:
    """What to do about a damaged folder."""
    return f"restore it from another copy of the bundle; what else is wrong: tfenv archive --verify {at}"
