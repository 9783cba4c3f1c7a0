"""What a user calls a snapshot: ``DIR``, ``DIR:CELL``, ``DIR@sha256:...``, or the same in a registry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tfenv.errors import UsageError

from .descriptors import Blob
from .format import CELL, REF
from .layout import Layout

# host[:port]/path[:tag][@digest]; a host has a dot or a port, or is localhost.
_REGISTRY = re.compile(
    r"(?P<host>(?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]+(?::\d+)?|[A-Za-z0-9-]+:\d+|localhost)"
    r"/(?P<path>[a-z0-9._/-]+)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True, kw_only=True)
class InFolder:
    """A snapshot in a folder; ``name`` is a cell or (the start of) a digest, empty for the only one."""

    folder: Path
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class InRegistry:
    """A snapshot in a registry; ``tag`` or ``digest`` may be empty."""

    host: str
    path: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.host}/{self.path}{tag}{f'@{self.digest}' if self.digest else ''}"


def parse(text: str) -> InFolder | InRegistry:
    """What ``text`` means: a folder that is there wins over a registry.

    Raises:
        UsageError: it is neither.
    """
    for mark in ("", "@", ":"):
        place, _, name = text.rpartition(mark) if mark else (text, "", "")
        if place and Path(place).is_dir():
            return InFolder(folder=Path(place), name=name)
    if match := _REGISTRY.fullmatch(text):
        return InRegistry(
            host=match["host"], path=match["path"], tag=match["tag"] or "", digest=match["digest"] or ""
        )
    raise UsageError(
        f"there is no folder of snapshots {text}",
        remedy="name one: DIR, DIR:CELL, DIR@sha256:..., or HOST/NAME:TAG in a registry",
    )


def target(text: str) -> InFolder | InRegistry:
    """Where to archive to: a registry where the text looks like one and no such folder is there."""
    match = _REGISTRY.fullmatch(text)
    if match and not Path(text).exists():
        return InRegistry(host=match["host"], path=match["path"], tag=match["tag"] or "")
    return InFolder(folder=Path(text))


def choose(layout: Layout, name: str) -> Blob:
    """The one snapshot of a folder that ``name`` means.

    Raises:
        UsageError: none or several; names those that there are.
    """
    there = layout.snapshots()
    wanted = name.removeprefix("sha256:")
    if not name:
        found = [blob for blob in there if len(there) == 1]
    else:
        found = [blob for blob in there if blob.annotations.get(REF) == name]
        found = found or [b for b in there if len(wanted) >= 6 and b.digest[7:].startswith(wanted)]
    if len(found) == 1:
        return found[0]
    listed = "".join(f"\n  {label(layout, blob)}" for blob in there) or " none"
    said = f"no snapshot {name}" if name else f"{len(there)} snapshots"
    raise UsageError(f"{layout.root} holds {said}; there are:{listed}", remedy="name one of these")


def label(layout: Layout, blob: Blob) -> str:
    """How to name a snapshot."""
    if name := blob.annotations.get(REF):
        return f"{layout.root}:{name}"
    return f"{layout.root}@{blob.digest[:19]}  ({blob.annotations.get(CELL, '')}, older)"
