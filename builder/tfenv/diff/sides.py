"""From what a user typed to a description: a cell, an image of the engine, an archive or a snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import digest
from tfenv.engine import run_command
from tfenv.errors import MatrixError, UsageError

from . import describe
from .layout import read_image
from .model import Description
from .places import Folder, archive
from .recall import Recaller
from .revisions import lock_at
from .stream import Streamed

if TYPE_CHECKING:
    from tfenv.model import Cell
    from tfenv.store import Store
    from tfenv.workspace import Workspace


@dataclass(frozen=True)
class Room:
    """Where sides are looked for.

    Args:
        workspace: for cells; store: for archives of images that the engine has; recall: for layers.
    """

    workspace: Workspace
    store: Store
    recall: Recaller
    env: Mapping[str, str]


def here(env: Mapping[str, str], workspace: Workspace) -> Room:
    """The room of this user's store."""
    from tfenv.memo import Memo
    from tfenv.store import default_store

    store = default_store(env)
    return Room(workspace, store, Recaller(Memo(store.memo_dir)), env)


def open_side(name: str, room: Room) -> Description:
    """What ``name`` means: a file or folder that is there, else a cell, else an image in the engine.

    Args:
        name: ``PATH``, ``PATH@NAME`` for one of several images, a cell or alias, ``CELL@REVISION`` for its
            lock in a commit, or ``repository:tag``.

    Raises:
        UsageError: it is none of them. IntegrityError: it is damaged. NotReadyError: no engine.
    """
    path, reference = _path(name)
    if path is not None:
        return _at(path, reference, name, room)
    if not _only_image(name):
        head, _, revision = name.partition("@")
        try:
            (cell,) = room.workspace.cells((head,))
        except (UsageError, MatrixError) as no_cell:
            try:
                return _in_engine(name, room)
            except UsageError as none:
                raise UsageError(
                    f"{name} is no file, no cell and no image here: {no_cell.message}; {none.message}",
                    remedy=no_cell.remedy,
                ) from None
        if revision:
            old = lock_at(revision, room.workspace.folder(cell), run_command)
            return describe.of_lock(cell, old, name=name)
        recorded = digest.read(room.workspace.folder(cell))
        return describe.of_lock(cell, room.workspace.lock(cell), name=name, recorded=recorded)
    return _in_engine(name, room)


def cell_of(name: str, room: Room) -> Cell | None:
    """The cell that ``open_side`` would take; None where it would take something else."""
    if _path(name)[0] is not None or _only_image(name) or "@" in name:
        return None
    try:
        (cell,) = room.workspace.cells((name,))
        return cell
    except (UsageError, MatrixError):
        return None


def _path(name: str) -> tuple[Path | None, str]:
    """A file or folder that is there, with what follows an @ where that is no part of its name."""
    try:
        if Path(name).exists():
            # A folder called as a cell is a cell, unless it is an image layout.
            plain = Path(name)
            meant = plain.is_file() or "/" in name or (plain / "oci-layout").is_file()
            return (plain, "") if meant else (None, "")
        head, at, reference = name.partition("@")
        if at and Path(head).exists():
            return Path(head), reference
    except (OSError, ValueError):
        pass
    if name.startswith(("/", "./", "../", "~")):
        raise UsageError(f"there is no {name}", remedy="name a file, a folder, a cell or an image")
    return None, ""


def _only_image(name: str) -> bool:
    """Whether it cannot be a cell: images are named with a colon, a digest or a registry."""
    return ":" in name or "/" in name.partition("@")[0]


def _at(path: Path, reference: str, name: str, room: Room) -> Description:
    if path.is_dir():
        from .snapshots import of_snapshot

        if (found := of_snapshot(path, reference, name)) is not None:
            return found
        return describe.of_image(name, read_image(Folder(path), str(path), reference, room.recall.layer))
    with archive(path) as opened:
        return describe.of_image(name, read_image(opened, str(path), reference, room.recall.layer))


def _in_engine(name: str, room: Room) -> Description:
    """An image of the engine: known from before, from its archive in the store, or as the engine saves it."""
    from tfenv.container import connect

    with connect(room.env) as containers:
        known = containers.inspect(name)
        if known is None:
            raise UsageError(
                f"the engine has no image {name}",
                remedy="see what it has: docker image ls; or docker pull it",
            )
        image = room.recall.image(known)
        if image is None and (kept := archive_of(known, room.store)):
            with archive(kept) as opened:
                image = read_image(opened, name, "", room.recall.layer)
        if image is None:
            with containers.saved(known) as chunks:
                image = read_image(Streamed(chunks, name, room.recall.layer), name)
        room.recall.keep_image(known, image)
        return describe.of_image(name, image)


def kept_archive(name: str, room: Room) -> Path | None:
    """The archive in the store of an image of the engine; None if there is none."""
    from tfenv.images import ids

    known = ids((name,), room.env)[name]
    return archive_of(known, room.store) if known else None


def archive_of(manifest: str, store: Store) -> Path | None:
    """The archive of an image that the store has, by the digest of its manifest; None if there is none."""
    for path in sorted(store.builds_dir.glob("*.json")):
        try:
            record = json.loads(path.read_text("utf-8"))
            if record["manifest"] == manifest and store.has(record["archive"], record["archive_bytes"]):
                return store.path(record["archive"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None
