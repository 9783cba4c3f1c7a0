"""Whether an environment's lock still follows matrix.yaml, its row and the templates; what to type if not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfenv.errors import TfenvError

from . import flow
from .locking import differences
from .model import RowPin, TeamLock
from .render import template_version

if TYPE_CHECKING:
    from tfenv.model import Environment
    from tfenv.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Behind:
    """What a lock does not follow any more. ``details`` may be empty."""

    message: str
    remedy: str
    details: tuple[str, ...] = ()


def behind(cell: Environment, lock: TeamLock, row: RowPin, template: str) -> Behind | None:
    """What the lock does not follow; None where it is current.

    Args:
        row: the row's image as the row's committed lock gives it now; template: version of the templates now.
    """
    if late := differences(cell, row.cell, row.packages, lock):
        return Behind(
            message="; ".join(late), remedy=f"tfenv lock {cell.name} --upgrade all", details=tuple(late)
        )
    keep = f"tfenv lock {cell.name}   (keeps every pin), then: tfenv render {cell.name}"
    if lock.row.inputs != row.inputs:
        return Behind(
            message=f"{row.cell} has moved on: it was locked on inputs sha256:{lock.row.inputs[:12]}, "
            f"they are sha256:{row.inputs[:12]} now; the packages are the same",
            remedy=keep,
        )
    if lock.row != row:
        return Behind(
            message=f"another digest is recorded of {row.cell} than when it was locked", remedy=keep
        )
    if lock.template != template:
        return Behind(message="it was locked for other templates", remedy=keep)
    return None


def behind_now(workspace: Workspace, cell: Environment, lock: TeamLock) -> Behind | None:
    """The same of what is committed; a row that cannot be read or rendered is told as that."""
    try:
        return behind(cell, lock, flow.pin(workspace, cell), template_version())
    except TfenvError as error:
        return Behind(message=f"of {cell.start.name}: {error.message}", remedy=error.remedy)
