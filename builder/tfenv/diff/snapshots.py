"""A snapshot as a side: its lock tells what was asked for, its recorded tree and configuration the image."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tfenv.errors import IntegrityError
from tfenv.lockfile import load_lock
from tfenv.snapshot import choosing, format, tree
from tfenv.snapshot.layout import Layout

from . import describe
from .layout import Image, Stored
from .model import Description, Entry, Layer
from .places import Folder

_TREE = 256 << 20  # bytes; the recorded tree of an image is some megabytes
_KINDS = {"file": "f", "folder": "d", "link": "l"}


def of_snapshot(path: Path, reference: str, name: str) -> Description | None:
    """The snapshot in a folder; None where the folder is a layout of images.

    Raises:
        UsageError: several, and none is named. IntegrityError: it is damaged.
    """
    if not _is_of_snapshots(path):
        return None
    layout = Layout(path)
    blob = choosing.choose(layout, reference)
    manifest = layout.manifest(blob)
    files = manifest.by_title

    def read(title: str, limit: int = 16 << 20) -> bytes:
        if title not in files:
            raise IntegrityError(f"{name} holds no {title}", remedy="restore it from another copy")
        return layout.read(files[title], limit)

    expected = format.load(layout.read(manifest.document), where=name).expected
    lock = load_lock(read("lock.json").decode("utf-8", "replace"), where=f"lock.json of {name}")
    layers = tuple(map(_layer, tree.load(read("expected/tree.jsonl.zst", _TREE)).layers))
    try:
        config = json.loads(read("expected/config.json"))
        if not isinstance(config, dict) or len(layers) != len(expected.diff_ids):
            raise ValueError
    except (ValueError, RecursionError):
        raise IntegrityError(
            f"the recorded image of {name} is damaged", remedy="restore it from another copy"
        ) from None
    pairs = zip(expected.diff_ids, expected.layer_bytes, strict=True)
    stored = tuple(Stored("", diff_id.removeprefix("sha256:"), size) for diff_id, size in pairs)
    image = Image(digest=expected.manifest, config=config, stored=stored, layers=layers)
    return replace(describe.with_lock(describe.of_image(name, image), lock), kind="snapshot")


def _is_of_snapshots(path: Path) -> bool:
    """Whether the index names a snapshot; it may be that of anybody's images."""
    data = Folder(path).document("index.json")
    try:
        listed = json.loads(data or b"{}")["manifests"]
        return any(format.CELL in (of.get("annotations") or {}) for of in listed)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _layer(entries: tuple[tree.Entry, ...]) -> Layer:
    """A recorded layer; of a hard link what it links to is meant."""
    found: dict[str, Entry] = {}
    for of in entries:
        path, kind = str(of.path), str(of.kind)
        link, sha256 = str(of.link), str(of.sha256)
        if kind == "hard link" and (target := found.get(link.strip("/"))):
            found[path] = target
            continue
        owner = str(of.owner).split(" ")[0]
        mode, size = of.mode, of.size
        found[path] = Entry(_KINDS.get(kind, "o"), mode, owner, size, sha256 or link)
    return Layer(found, {}, sum(entry.size for entry in found.values()))
