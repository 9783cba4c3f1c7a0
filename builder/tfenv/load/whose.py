"""Whether what the program said can be of a cell at all: it tells its TensorFlow and its Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.version import InvalidVersion, Version

from tfenv.errors import IntegrityError
from tfenv.model import Cell
from tfenv.versions import agrees


def require_of(cell: Cell, events: Iterable[Mapping[str, Any]]) -> None:
    """Hold the program's words to the cell.

    Raises:
        IntegrityError: they are of another TensorFlow, or of another Python.
    """
    for event in events:
        said, python = str(event.get("tensorflow") or ""), str(event.get("python") or "")
        if event["event"] in ("row", "worker") and said and not _same(cell.row.tensorflow, said):
            raise _other(cell, f"TensorFlow {said}", cell.row.tensorflow)
        if event["event"] == "start" and python and not agrees(cell.python, python):
            raise _other(cell, f"Python {python}", cell.python)


def _same(wanted: str, said: str) -> bool:
    """TensorFlow calls 2.15.0.post1 itself 2.15.0, and 2.22.0rc0 2.22.0-rc0."""
    try:
        one, other = Version(wanted), Version(said)
    except InvalidVersion:
        return False
    return (one.release, one.pre) == (other.release, other.pre)


def _other(cell: Cell, said: str, wanted: str) -> IntegrityError:
    return IntegrityError(
        f"this was measured with {said:.80}, and {cell.name} has {wanted}",
        remedy="name the cell that it is of: tfenv list",
    )
