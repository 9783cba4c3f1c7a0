"""The lock that an image was built from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.errors import UsageError
from tfenv.lockfile import dump_lock, load_lock

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.images import Image
    from tfenv.inputs import Inputs
    from tfenv.model import Cell, Lock
    from tfenv.workspace import Workspace


def _locks(host: Host) -> Path:
    return host.store.root / "locks"


def keep_lock(inputs: Inputs, host: Host) -> None:
    """Keep a lock that is committed nowhere, so that its image can be verified and built again."""
    from tfenv.files import write_all

    write_all(_locks(host), {f"{inputs.lock_hash}.json": dump_lock(inputs.lock)})


def lock_of(workspace: Workspace, cell: Cell, image: Image, host: Host) -> Lock:
    """The lock that an image's label names: the committed one, or one kept by `up`.

    Raises:
        UsageError: it is neither.
    """
    from tfenv.lockfile import lock_hash

    lock = workspace.find_lock(cell)
    if lock is not None and lock_hash(lock) == image.lock:
        return lock
    kept = _locks(host) / f"{image.lock}.json"
    if image.cell == cell.name and image.lock and kept.is_file():
        return load_lock(kept.read_text("utf-8"), where=str(kept))
    raise UsageError(
        f"{image.name} was not built from the lock in images/{cell.name}",
        remedy=f"type: tfenv build {cell.name}",
    )
