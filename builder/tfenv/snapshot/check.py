"""Rehash a folder of snapshots: every missing, cut off or changed file by its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from tfenv.errors import TfenvError
from tfenv.files import sha256_of

from . import format
from .descriptors import Blob, Manifest, open_plain
from .layout import Layout

State = Literal["missing", "truncated", "changed", "not a file"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A blob that is not what it should be, and the file that it holds.

    Args:
        snapshot: the cell's name; title: path of the file; empty for the manifest itself.
        found: size in bytes, where the blob is there.
    """

    snapshot: str
    title: str
    digest: str
    state: State | Literal["damaged"]
    size: int = 0
    found: int = 0
    why: str = ""

    def __str__(self) -> str:
        told = f": {self.found} of {self.size} bytes" if self.state == "truncated" else ""
        more = f": {self.why}" if self.why else ""
        return f"{self.snapshot}: {self.title or 'its manifest'} is {self.state}{told}{more} ({self.digest})"


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a folder holds. ``unused``: blobs that no snapshot names, as a killed archive leaves them."""

    snapshots: tuple[str, ...]
    blobs: int
    bytes: int
    problems: tuple[Problem, ...]
    unused: tuple[str, ...]


def check(layout: Layout) -> Checked:
    """Read every blob of every snapshot once.

    Raises:
        UsageError: the folder is none of snapshots. IntegrityError: its index is damaged.
    """
    snapshots, problems, cells = layout.snapshots(), [], []
    wanted: dict[str, list[tuple[str, Blob]]] = {}
    for blob in snapshots:
        cell = blob.annotations.get(format.CELL, blob.digest)
        cells.append(cell)
        wanted.setdefault(blob.digest, []).append((cell, blob))
        try:
            manifest = layout.manifest(blob)
        except TfenvError as error:
            if state(layout, blob)[0] is None:  # it has its own hash, and is no good manifest
                problems.append(_problem(cell, blob, "damaged", why=error.message))
            continue
        for file in named(manifest):
            wanted.setdefault(file.digest, []).append((cell, file))
        problems += _document(layout, manifest, cell)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        firsts = [users[0][1] for users in wanted.values()]
        found = pool.map(lambda blob: state(layout, blob), firsts)
        for users, (wrong, size) in zip(wanted.values(), found, strict=True):
            if wrong is not None:
                problems += [_problem(cell, blob, wrong, found=size) for cell, blob in users]
    return Checked(
        snapshots=tuple(cells),
        blobs=len(wanted),
        bytes=sum(users[0][1].size for users in wanted.values()),
        problems=tuple(problems),
        unused=tuple(sorted(set(_there(layout)) - wanted.keys())),
    )


def named(manifest: Manifest) -> Iterator[Blob]:
    """All blobs that a manifest names."""
    yield manifest.document
    yield from manifest.files


def state(layout: Layout, blob: Blob) -> tuple[State | None, int]:
    """What is wrong with a blob, None for nothing, and the size in bytes that it has."""
    path = layout.path(blob.digest)
    try:
        found = path.lstat().st_size
    except OSError:
        return "missing", 0
    if path.is_symlink() or not path.is_file():
        return "not a file", 0
    if found < blob.size:
        return "truncated", found
    if found > blob.size:
        return "changed", found
    with open_plain(path, blob, at=layout.root) as file:
        same = f"sha256:{sha256_of(file)}" == blob.digest
    return (None if same else "changed"), found


def _document(layout: Layout, manifest: Manifest, cell: str) -> list[Problem]:
    try:
        format.load(layout.read(manifest.document), where=cell)
    except TfenvError as error:
        if state(layout, manifest.document)[0] is None:
            return [_problem(cell, manifest.document, "damaged", why=error.message)]
    return []


def _problem(
    cell: str, blob: Blob, what: State | Literal["damaged"], *, found: int = 0, why: str = ""
) -> Problem:
    title = blob.title or ("its document" if blob.media_type == format.ARTIFACT else "")
    return Problem(
        snapshot=cell, title=title, digest=blob.digest, state=what, size=blob.size, found=found, why=why
    )


def _there(layout: Layout) -> Iterator[str]:
    folder = layout.root / "blobs" / "sha256"
    if folder.is_dir():
        yield from (f"sha256:{path.name}" for path in folder.iterdir())
