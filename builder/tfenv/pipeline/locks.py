"""The lock that an image was built from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfenv.errors import UsageError
from tfenv.lockfile import dump_lock, load_lock

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.images import Image
    from tfenv.inputs import Inputs
    from tfenv.model import Cell, Lock
    from tfenv.workspace import Workspace


_UNCOMMITTED = "locks"
_FORMER = "history/locks"  # of images that names meant, and may be taken back to


def keep_lock(inputs: Inputs, host: Host) -> None:
    """Keep a lock, so that its image can be verified when it is committed nowhere, or no longer."""
    from tfenv.files import write_all

    folder = host.store.root / (_FORMER if inputs.locked else _UNCOMMITTED)
    write_all(folder, {f"{inputs.lock_hash}.json": dump_lock(inputs.lock)})


def lock_of(workspace: Workspace, cell: Cell, image: Image, host: Host, *, former: bool = False) -> Lock:
    """The lock that an image's label names: the committed one, or one that never was.

    Args:
        former: or one that was committed when the image was built.

    Raises:
        UsageError: it is neither. TfenvError: the one that was kept is damaged.
    """
    from tfenv.lockfile import lock_hash

    lock = workspace.find_lock(cell)
    if lock is not None and lock_hash(lock) == image.lock:
        return lock
    for folder in (_UNCOMMITTED, *([_FORMER] if former else [])):
        kept = host.store.root / folder / f"{image.lock}.json"
        if image.cell == cell.name and image.lock and kept.is_file():
            lock = load_lock(kept.read_text("utf-8"), where=str(kept))
            if lock_hash(lock) == image.lock:
                return lock
    raise UsageError(
        f"{image.name} was not built from the lock in images/{cell.name}",
        remedy=f"type: tfenv build {cell.name}",
    )
