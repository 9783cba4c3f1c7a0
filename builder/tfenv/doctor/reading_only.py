"""What other commands keep is used here, and nothing is added to it: the doctor changes nothing, ever."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tfenv.memo import Memo

if TYPE_CHECKING:
    from tfenv.model import Matrix
    from tfenv.workspace import Workspace


class _ReadingOnly(Memo):
    """Earlier results, and no new ones."""

    def put(self, key: str, value: Any) -> None:
        """Nothing is kept."""


def matrix_of(workspace: Workspace) -> Matrix:
    """The matrix of a workspace.

    Raises:
        MatrixError: there is none, or it has problems.
    """
    from tfenv.matrix_cache import cached_matrix

    folder = None
    with contextlib.suppress(OSError, RuntimeError):  # no home, no store
        folder = workspace.memo.folder
    return cached_matrix(workspace.matrix_path, _ReadingOnly(folder))
