"""What of the store is of no more use, and its removal."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tfenv.store import Store

_STALE_AFTER_SECONDS = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class Freed:
    """What was removed (or would be): ``bytes`` and the number of ``files``."""

    bytes: int
    files: int


def alive(pid: int) -> bool:
    """Does this pid run?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def free(
    store: Store,
    keep: set[str],
    *,
    dry_run: bool = False,
    now: Callable[[], float] = time.time,
    alive: Callable[[int], bool] = alive,
) -> Freed:
    """Remove blobs and results not in ``keep``, logs, records without their blob, and stale tmp files.

    Args:
        keep: sha256 of the blobs, and keys of the results, to keep.
        dry_run: only count.
        now: Unix seconds; alive: does this pid run?

    A tmp file is stale after a day, or when the process that its name starts with is gone.
    A download's ``.part`` names no process: it stays a day, so that the download can resume.

    Raises:
        UsageError: the folder is not the store's own.
    """
    store.require_own()
    with store.lock():
        doomed = [b for b in _files(store.blobs_dir) if b.name not in keep]
        doomed += [f for f in _files(store.memo_dir) if f.stem not in keep]
        doomed += _files(store.logs_dir)
        doomed += [f for f in _files(store.tmp_dir) if _stale(f, now(), alive)]
        doomed += [r for r in _files(store.builds_dir) if not _holds(store, r, keep)]
        freed = Freed(bytes=sum(f.lstat().st_size for f in doomed), files=len(doomed))
        if not dry_run:
            for file in doomed:
                file.unlink(missing_ok=True)
        return freed


def _holds(store: Store, record: Path, keep: set[str]) -> bool:
    """A record is worth keeping while every blob that it names is kept."""
    try:
        named = set(re.findall(r'"(?:sha256:)?([0-9a-f]{64})"', record.read_text("utf-8")))
    except (OSError, ValueError):
        return False
    present = {digest for digest in named if store.has(digest)}
    return bool(present) and present <= keep


def _files(folder: Path) -> list[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(f for f in folder.iterdir() if f.is_file() or f.is_symlink())


def _stale(file: Path, now: float, alive: Callable[[int], bool]) -> bool:
    owner = file.name.split("-", 1)[0]
    if owner.isdigit() and len(owner) < 10 and not alive(int(owner)):
        return True
    return now - file.stat().st_mtime > _STALE_AFTER_SECONDS
