"""Licences from the files that a lock names, where the store has them: nothing is fetched for it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tfenv.errors import IntegrityError
from tfenv.rootfs import _members as members_of_deb  # changing that module would change every recipe
from tfenv.store import Store

from . import licences
from .bills import Evidence
from .model import UNKNOWN, Component, Kind, Licence

_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_MOST = 4 << 20  # bytes of a METADATA or a copyright file; they have some kilobytes


def from_store(store: Store) -> Evidence:
    """Reads the licence of a component from its wheel or .deb; unknown where the store has it not."""

    def evidence(of: Component) -> Licence:
        read = _READERS.get(of.kind)
        if read is None or not of.sha256 or not store.has(of.sha256):
            return UNKNOWN
        try:
            return read(store.path(of.sha256), of)
        except (OSError, zipfile.BadZipFile, IntegrityError, KeyError, ValueError, NotImplementedError):
            return UNKNOWN  # that the file is damaged is found by whoever builds from it

    return evidence


def _of_wheel(path: Path, _of: Component) -> Licence:
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if _METADATA.fullmatch(name))
        if not names:
            return UNKNOWN
        with archive.open(names[0]) as file:
            text = file.read(_MOST).decode("utf-8", "replace")
        return licences.of_metadata(text, licences.beside(names[0], archive.namelist()))


def _of_deb(path: Path, of: Component) -> Licence:
    wanted = f"usr/share/doc/{of.name}/copyright"
    for member, data in members_of_deb(path):
        if member.name.removeprefix("./") == wanted and data is not None:
            return licences.of_copyright(data[:_MOST].decode("utf-8", "replace"))
    return UNKNOWN


_READERS: Mapping[Kind, Callable[[Path, Component], Licence]] = {"wheel": _of_wheel, "deb": _of_deb}
