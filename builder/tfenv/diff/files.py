"""Layers on top of each other: the files of an image, as a container sees them."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Entry, Layer

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"


def merged(layers: Iterable[Layer]) -> tuple[dict[str, Entry], dict[str, str]]:
    """The files and the kept texts of an image.

    A layer takes files away by whiteouts, https://github.com/opencontainers/image-spec/blob/main/layer.md.
    They act on the layers below only, wherever they stand in their own.
    """
    entries: dict[str, Entry] = {}
    texts: dict[str, str] = {}
    for layer in layers:
        gone: list[str] = []
        emptied: list[str] = []
        own = {}
        for path, entry in layer.entries.items():
            folder, _, name = path.rpartition("/")
            if name == _OPAQUE:
                emptied.append(folder)
            elif name.startswith(_WHITEOUT):
                gone.append(f"{folder}/{name[len(_WHITEOUT) :]}".lstrip("/"))
            else:
                own[path] = entry
        # A file in place of a folder hides what was in it.
        gone += [path for path, new in own.items() if new.kind != "d" and _is_folder(entries, path)]
        if gone or emptied:
            _remove(entries, texts, set(gone), set(emptied))
        for path in own:
            texts.pop(path, None)
        entries.update(own)
        texts.update((path, text) for path, text in layer.texts.items() if path in own)
    return entries, texts


def _is_folder(entries: dict[str, Entry], path: str) -> bool:
    old = entries.get(path)
    return old is not None and old.kind == "d"


def _remove(entries: dict[str, Entry], texts: dict[str, str], gone: set[str], emptied: set[str]) -> None:
    for path in list(entries):
        if path in gone or _below(path, gone) or _below(path, emptied):
            del entries[path]
            texts.pop(path, None)


def _below(path: str, folders: set[str]) -> bool:
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
