"""The lock that an image was built from, where this workspace or store has it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfenv.diff.model import Description
from tfenv.errors import TfenvError

if TYPE_CHECKING:
    from tfenv.model import Lock
    from tfenv.store import Store
    from tfenv.workspace import Workspace


def lock_of(image: Description, workspace: Workspace, store: Store) -> Lock | None:
    """The lock whose hash an image's label names: a committed one, or one that ``tfenv up`` has kept."""
    from tfenv.lockfile import load_lock, lock_hash

    wanted = image.labels.values.get("dev.tfenv.lock", "").removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", wanted):
        return None
    try:
        (cell,) = workspace.cells((image.labels.values.get("dev.tfenv.cell", ""),))
        lock = workspace.find_lock(cell)
        if lock is not None and lock_hash(lock) == wanted:
            return lock
    except TfenvError:
        pass  # the image is of another matrix: a kept lock will do
    kept = store.root / "locks" / f"{wanted}.json"
    try:
        return load_lock(kept.read_text("utf-8"), where=str(kept))
    except (OSError, ValueError, TfenvError):
        return None
