"""A cell's lock as a commit has it: what a pull request changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.engine import Run
from tfenv.errors import UsageError
from tfenv.files import LOCK_NAME
from tfenv.lockfile import load_lock

if TYPE_CHECKING:
    from tfenv.model import Lock

# Of what git takes for a revision: nothing that could be an option or name a file.
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./~^{}@-]{0,200}")


def lock_at(revision: str, folder: Path, run: Run) -> Lock:
    """The lock that a commit has in the folder of a cell.

    Args:
        revision: as git names it, e.g. ``main``, ``HEAD~3`` or ``v1.2``. folder: images/CELL.
        run: runs git.

    Raises:
        UsageError: there is no such commit, or no lock in it.
    """
    if not _REVISION.fullmatch(revision):
        raise UsageError(f"{revision!r} is no revision of git", remedy="name a branch, a tag or a commit")
    path = f"./{folder.name}/{LOCK_NAME}"
    done = run(["git", "-C", str(folder.parent), "show", f"{revision}:{path}"])
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["git failed"])[-1]
        raise UsageError(
            f"git has no lock of {folder.name} at {revision}: {said}",
            remedy=f"see what it has: git log -- images/{folder.name}/{LOCK_NAME}",
        )
    return load_lock(done.stdout, where=f"{path} at {revision}")
