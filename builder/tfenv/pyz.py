"""A program that runs where tfenv is not, as one file: the same sources give the same bytes on every host."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tfenv.errors import IntegrityError


def packed(files: Mapping[str, Path]) -> bytes:
    """A zipapp.

    Args:
        files: by their name in it; one is ``__main__.py``.

    Raises:
        IntegrityError: a file is missing.
    """
    if missing := [str(path) for path in files.values() if not path.is_file()]:
        raise IntegrityError(f"{missing[0]} is missing", remedy="install tfenv again")
    out = io.BytesIO()
    # Stored, not compressed: zlib's output differs between its versions.
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, files[name].read_bytes())
    return out.getvalue()


def sources(root: Path, package: str) -> dict[str, Path]:
    """All modules of a package in ``root``, by their name below it."""
    return {path.relative_to(root).as_posix(): path for path in (root / package).rglob("*.py")}
