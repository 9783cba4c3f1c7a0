"""Layers on top of each other: the files of an image, as a container sees them."""

from __future__ import annotations

from collections.abc import Iterable

from tfenv.whiteouts import hidden, is_mark

from .model import Entry, Layer


def merged(layers: Iterable[Layer]) -> tuple[dict[str, Entry], dict[str, str]]:
    """The files and the kept texts of an image."""
    entries: dict[str, Entry] = {}
    texts: dict[str, str] = {}
    for layer in layers:
        own = {path: entry for path, entry in layer.entries.items() if not is_mark(path)}
        # A file in place of a folder hides what was in it.
        replaced = [path for path, new in own.items() if new.kind != "d" and _is_folder(entries, path)]
        if hides := hidden(layer.entries, replaced):
            for path in [path for path in entries if hides.hides(path)]:
                del entries[path]
                texts.pop(path, None)
        for path in own:
            texts.pop(path, None)
        entries.update(own)
        texts.update((path, text) for path, text in layer.texts.items() if path in own)
    return entries, texts


def _is_folder(entries: dict[str, Entry], path: str) -> bool:
    old = entries.get(path)
    return old is not None and old.kind == "d"
