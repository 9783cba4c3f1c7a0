"""Results kept in the store by a hash of all that decides them, so that nothing is worked out twice.

A kept result that is damaged or another's is no result. One that cannot be kept is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")


class Memo:
    """Results by key.

    Args:
        folder: one JSON file per result; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, key: str) -> Any:
        """The JSON value kept under a key; None where there is none that can be trusted."""
        if self.folder is None:
            return None
        try:
            digest, _, body = (self.folder / f"{key}.json").read_bytes().partition(b"\n")
            return json.loads(body) if digest == _seal(key, body) else None
        except (OSError, ValueError):
            return None

    def put(self, key: str, value: Any) -> None:
        """Keep a JSON value, all of it or nothing."""
        if self.folder is None:
            return
        body = json.dumps(value).encode()
        aside = self.folder / f".{key}.{os.getpid()}.tmp"
        with contextlib.suppress(OSError):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                aside.write_bytes(_seal(key, body) + b"\n" + body)
                aside.replace(self.folder / f"{key}.json")
            finally:
                aside.unlink(missing_ok=True)

    def recall(
        self,
        key: Callable[[], str | None],
        make: Callable[[], _T],
        dump: Callable[[_T], Any],
        load: Callable[[Any], _T],
    ) -> _T:
        """What ``make`` gives, from here if it is known; what it raises is never kept.

        Args:
            key: hash of all that ``make`` reads; None where that cannot be told.
            dump, load: to a JSON value and back; ValueError or IndexError if it is not one.
        """
        before = key()
        if before is None:
            return make()
        kept = self.get(before)
        if kept is not None:
            with contextlib.suppress(ValueError, IndexError):
                return load(kept)
        made = make()
        if key() == before:  # else the files were changed while they were read
            self.put(before, dump(made))
        return made


def hash_of(*parts: bytes) -> str:
    """sha256 in hex over parts that cannot run into each other."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d\0" % len(part))
        digest.update(part)
    return digest.hexdigest()


#: Files of tfenv that have a say in what a matrix, a lock or a rendered file is.
DECIDING = ("*.py", "compat/*.py", "model/*.py", "team/*.py", "team/*.json", "facts/*.json")


@cache
def code_version(package: Path = Path(__file__).parent, search: tuple[str, ...] | None = None) -> str:
    """Hash of what decides beside the input: tfenv's modules and facts, Python, what else is installed.

    Args:
        package: tfenv's folder; search: folders of installed distributions (sys.path).
    """
    parts = [sys.version.encode()]
    for what in DECIDING:
        for path in sorted(package.glob(what)):
            parts += [path.name.encode(), path.read_bytes()]
    for folder in sys.path if search is None else search:
        with contextlib.suppress(OSError):
            parts += sorted(os.fsencode(path.name) for path in Path(folder).glob("*.dist-info"))
    return hash_of(*parts)


def _seal(key: str, body: bytes) -> bytes:
    return hash_of(key.encode(), body).encode()
