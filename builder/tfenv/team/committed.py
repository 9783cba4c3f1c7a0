"""What the committed locks of an environment and of its row give together: its whole lock, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.errors import UsageError

from . import lockfile
from .joined import whole
from .render import render, template_version

if TYPE_CHECKING:
    from tfenv.model import Environment, Lock


def whole_lock(cell: Environment, row: Lock | None, images: Path) -> Lock | None:
    """All that is in the environment's image; None where it or its row is not locked.

    Args:
        row: the row's committed lock; images: the folder that the environment's own lock is in.
    """
    team = lockfile.read(lockfile.lock_file(images, cell.name))
    return whole(cell, row, team) if team is not None and row is not None else None


def files(cell: Environment, row: Lock, images: Path) -> dict[str, str]:
    """The generated files, by name.

    Args:
        row, images: as of ``whole_lock``.

    Raises:
        UsageError: it is not locked, or was locked for other templates.
    """
    team = lockfile.read(lockfile.lock_file(images, cell.name))
    if team is None:
        raise UsageError(f"{cell.name} is not locked", remedy=f"type: tfenv lock {cell.name}")
    if team.template != template_version():
        raise UsageError(
            f"the lock of {cell.name} was made for another version of the templates",
            remedy=f"type: tfenv lock {cell.name}   (keeps every pin, follows the templates)",
        )
    return render(cell, row, team, whole(cell, row, team))
