"""What a layer of an image takes away from the layers below it.

https://github.com/opencontainers/image-spec/blob/main/layer.md#whiteouts
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_MARK, _OPAQUE = ".wh.", ".wh..wh..opq"


@dataclass(frozen=True)
class Hidden:
    """What the marks of one layer hide. They act on the layers below only, wherever they stand in their own.

    Args:
        gone: files and folders, by path; emptied: folders that stay, without what was in them.
    """

    gone: frozenset[str]
    emptied: frozenset[str]

    def __bool__(self) -> bool:
        """Whether it hides anything."""
        return bool(self.gone or self.emptied)

    def hides(self, path: str) -> bool:
        """Whether a path of a layer below is no longer seen."""
        return path in self.gone or _below(path, self.gone) or _below(path, self.emptied)


def is_mark(path: str) -> bool:
    """Whether a path in a layer is a mark, and no file of the image."""
    return path.rpartition("/")[2].startswith(_MARK)


def hidden(paths: Iterable[str], also: Iterable[str] = ()) -> Hidden:
    """What a layer hides.

    Args:
        paths: all that is in it, without leading slashes; also: paths that it hides without a mark.
    """
    gone, emptied = set(also), set()
    for path in paths:
        folder, _, name = path.rpartition("/")
        if name == _OPAQUE:
            emptied.add(folder)
        elif name.startswith(_MARK):
            gone.add(f"{folder}/{name[len(_MARK) :]}".lstrip("/"))
    return Hidden(frozenset(gone), frozenset(emptied))


def _below(path: str, folders: frozenset[str]) -> bool:
    if not folders:
        return False
    if "" in folders:
        return True
    at = path.find("/")
    while at >= 0:
        if path[:at] in folders:
            return True
        at = path.find("/", at + 1)
    return False
