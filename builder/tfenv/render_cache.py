"""A cell's generated files as they were last rendered, for as long as nothing that decides them has changed.

Rendering takes jinja2 and checking a lock takes packaging, which take longer to import than to run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tfenv.memo import Memo, code_version, hash_of
from tfenv.model import Cell
from tfenv.plain import to_plain
from tfenv.render import template_version


def files_key(cell: Cell, lock: Callable[[], bytes], *, code: Callable[[], str] = code_version) -> str | None:
    """Hash of all that decides a cell's files; None where ``lock``, which reads the lock's file, cannot."""
    try:
        told = json.dumps([template_version(cell.base.kind), to_plain(cell)])
        return hash_of(b"files", code().encode(), told.encode(), lock())
    except OSError:
        return None


def cached_files(
    cell: Cell,
    lock: Callable[[], bytes],
    memo: Memo,
    make: Callable[[], dict[str, str]],
    *,
    code: Callable[[], str] = code_version,
) -> dict[str, str]:
    """What ``make`` gives for the cell and the bytes of its lock; what it raises is never kept."""
    return memo.recall(lambda: files_key(cell, lock, code=code), make, lambda files: files, _load)


def _load(data: Any) -> dict[str, str]:
    if not isinstance(data, dict) or not all(isinstance(text, str) for text in data.values()):
        raise ValueError("no files")
    return data
