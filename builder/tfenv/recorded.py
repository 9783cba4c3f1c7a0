"""Which cell's recorded image a digest is: an image that is another cell's is not taken for this one's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfenv import digest as digests
from tfenv.errors import IntegrityError, UsageError

if TYPE_CHECKING:
    from tfenv.model import Cell
    from tfenv.workspace import Workspace


def cell_of(workspace: Workspace, digest: str) -> Cell | None:
    """The cell, or the team's environment, whose recorded image has that digest; None if none has."""
    for cell in workspace.cells((), every=True):
        try:
            recorded = digests.read(workspace.folder(cell))
        except IntegrityError:  # of another cell than what is asked about: told where that is
            continue
        if recorded is not None and recorded.manifest == digest:
            return cell
    return None


def require_own(workspace: Workspace, cell: Cell, digest: str, what: str) -> None:
    """Refuse an image, or what was said in one, that is known to be another cell's.

    A digest that nobody has recorded may be this cell's: of an older lock, or of another builder.

    Args:
        what: that has the digest, e.g. a folder.

    Raises:
        UsageError: it is another cell's.
    """
    recorded = digests.read(workspace.folder(cell))
    if recorded is not None and recorded.manifest == digest:
        return
    other = cell_of(workspace, digest)
    if other is not None and other.name != cell.name:
        raise UsageError(
            f"{what} is {other.name}, not {cell.name}: its digest {digest} is the recorded one of that",
            remedy=f"name that cell: {other.name}; or give what is of {cell.name}",
        )
