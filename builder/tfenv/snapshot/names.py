"""Names in a bundle, which somebody else may have written: none may lead out of the folder it is put in."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tfenv.errors import IntegrityError

# What Debian, Python and the templates name files: no backslash, no control character, no hidden file.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~:%!@-]*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LONGEST = 240  # bytes of a part; file systems take 255, and a temporary name is longer than its file's
_DEEPEST = 8

HOSTILE = "do not use this bundle: it was damaged, or made to write outside of its folder"


def digest(value: object, *, where: str) -> str:
    """``value``, which is ``sha256:`` and 64 hexadecimal digits.

    Raises:
        IntegrityError: it is anything else, and would name a file elsewhere.
    """
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return value
    raise IntegrityError(f"{where}: {value!r} is no sha256 digest", remedy=HOSTILE)


def title(value: object, *, where: str) -> str:
    """``value``, which is the relative path of a file: ``wheels/python/six-1.16.0-py2.py3-none-any.whl``.

    Raises:
        IntegrityError: it is absolute, has ``..`` in it, or characters that no input's name has.
    """
    parts = value.split("/") if isinstance(value, str) else []
    good = all(_PART.fullmatch(part) and len(part) <= _LONGEST for part in parts)
    if isinstance(value, str) and good and 0 < len(parts) <= _DEEPEST:
        return value
    raise IntegrityError(f"{where} names a file outside of its folder, or none: {value!r}", remedy=HOSTILE)


def together(titles: Iterable[str], *, where: str) -> None:
    """Refuse names that cannot lie in one folder: one twice, or one that is a file and a folder.

    Raises:
        IntegrityError: names the first.
    """
    files: set[str] = set()
    folders: set[str] = set()
    for name in titles:
        parents = {name[:n] for n, letter in enumerate(name) if letter == "/"}
        if name in files or name in folders or parents & files:
            raise IntegrityError(f"{where} has two files of one name: {name}", remedy=HOSTILE)
        files.add(name)
        folders |= parents
