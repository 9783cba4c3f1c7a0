"""What bisections have left in the store, and what of it is of no more use."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfenv.bisect.journal import NAME, claim
from tfenv.errors import NotReadyError
from tfenv.files import own_sizes
from tfenv.freeing import Freed

KEPT_DAYS = 30
_MADE_ANEW = ("cache", "env", "mount", "wheels")  # each time; only a kill leaves one of the last three
_ID = re.compile("[0-9a-f]{12}")


def free(root: Path, *, now: float, dry_run: bool = False) -> Freed:
    """Remove all but what was learnt of each bisection, and all of one that nobody has gone on with.

    One that somebody works on is left alone.

    Args:
        root: the store's folder of bisections. now: Unix seconds. dry_run: only count.
    """
    sizes: list[int] = []
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if not _ID.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
            continue
        with _claimed(folder) as ours:
            for path in _stale(folder, now) if ours else ():
                sizes += own_sizes(path)
                if not dry_run:
                    shutil.rmtree(path, ignore_errors=True)
    return Freed(bytes=sum(sizes), files=len(sizes))


def _stale(folder: Path, now: float) -> Iterator[Path]:
    journal = folder / NAME
    last = (journal if journal.is_file() else folder).stat().st_mtime
    if now - last > KEPT_DAYS * 24 * 3600:
        yield folder
    else:
        yield from (path for name in _MADE_ANEW if (path := folder / name).is_dir() and not path.is_symlink())


@contextmanager
def _claimed(folder: Path) -> Iterator[bool]:
    """Whether nobody else works on it, nor begins to as long as this lasts."""
    try:
        file = (folder / NAME).open("r+b")
    except FileNotFoundError:
        yield True
        return
    with file:
        try:
            claim(file, folder)
            ours = True
        except NotReadyError:
            ours = False
        yield ours
