"""What is compared, and what differs: an image by its digests, documents and files; one thing in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .tree import Tree


@dataclass(frozen=True, kw_only=True)
class Image:
    """One side of a comparison.

    Args:
        manifest, config: the documents; tree: the files. They are read only where digests differ.
        builder: what built it, as people say it.
    """

    manifest_digest: str
    config_digest: str
    diff_ids: tuple[str, ...]
    manifest: Callable[[], Mapping[str, Any]]
    config: Callable[[], Mapping[str, Any]]
    tree: Callable[[], Tree]
    builder: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that differs.

    Args:
        where: ``files``, ``layer 2``, ``configuration``, ``manifest``.
        path: of the file, or of the value in the document; empty for all of it.
        what: the aspects, e.g. ``time``; causes: what explains them; left: aspects that nothing does.
    """

    where: str
    path: str
    what: tuple[str, ...]
    causes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    detail: str = ""

    @property
    def explained(self) -> bool:
        """Whether everything about it has a cause."""
        return not self.left
