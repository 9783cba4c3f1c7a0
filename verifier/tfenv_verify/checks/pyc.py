"""No stale .pyc: Python would compile its source again at each start, on a read-only root always."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass, field
from typing import Callable, Iterable

from ..context import Context
from ..places import python_folders, walk
from ..protocol import Report, shorten

UNCOMPILED_LIMIT = 50  # sources; a few never compile (templates, tests of Python 2)
_CHECK_HASH, _CHECK_SOURCE = 0b01, 0b10


@dataclass
class Seen:
    """What the walk found, as lines for a person."""

    good: int = 0
    stale: list[str] = field(default_factory=list)
    uncompiled: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)


def check(context: Context, report: Report) -> None:
    """No .pyc is stale, and nearly all sources are compiled."""
    inspect(python_folders(), report, say=report.warning if context.declared.foreign else report.error)


def inspect(
    folders: Iterable[str], report: Report, tag: str = "", say: Callable[..., None] | None = None
) -> None:
    """Look at all sources and .pyc files of this interpreter under these folders.

    Args:
        tag: the interpreter's cache tag, e.g. ``cpython-311``.
        say: how stale ones are said; None for an error.
    """
    tag = tag or sys.implementation.cache_tag or ""
    seen, visited = Seen(), set()
    for top in folders:
        for folder, inner, files in walk(top):
            inner[:] = [name for name in inner if name != "__pycache__"]
            real = os.path.realpath(folder)
            if real in visited:
                inner[:] = []
                continue
            visited.add(real)
            _folder(folder, files, tag, seen)
    _tell(seen, tag, report, say or report.error)


def staleness(pyc: bytes, source: bytes, mtime: int) -> str:
    """Why this .pyc does not match its source; empty if it does.

    Args:
        mtime: the source's modification time in whole seconds.
    """
    if len(pyc) < 16:
        return "cut short"
    if pyc[:4] != importlib.util.MAGIC_NUMBER:
        return "of another Python"
    flags = int.from_bytes(pyc[4:8], "little")
    if flags & _CHECK_HASH:
        if pyc[8:16] != importlib.util.source_hash(source):
            checked = "checked" if flags & _CHECK_SOURCE else "unchecked"
            return f"{checked} hash differs from the source"
        return ""
    if int.from_bytes(pyc[8:12], "little") != mtime & 0xFFFFFFFF:
        return "time differs from the source"
    if int.from_bytes(pyc[12:16], "little") != len(source) & 0xFFFFFFFF:
        return "size differs from the source"
    return ""


def _folder(folder: str, files: list[str], tag: str, seen: Seen) -> None:
    cache = os.path.join(folder, "__pycache__")
    compiled = set(os.listdir(cache)) if os.path.isdir(cache) else set()
    sources = [name[:-3] for name in files if name.endswith(".py")]
    for stem in sources:
        mine = [f"{stem}.{tag}{opt}.pyc" for opt in ("", ".opt-1", ".opt-2")]
        present = [name for name in mine if name in compiled]
        if not present:
            seen.uncompiled.append(os.path.join(folder, stem + ".py"))
        for name in present:
            _one(os.path.join(folder, stem + ".py"), os.path.join(cache, name), seen)
    known = set(sources)
    seen.orphans += [
        os.path.join(cache, name)
        for name in sorted(compiled)
        if name.endswith(".pyc") and f".{tag}" in name and name.split(f".{tag}")[0] not in known
    ]


def _one(source: str, pyc: str, seen: Seen) -> None:
    try:
        with open(source, "rb") as stream:
            text, mtime = stream.read(), int(os.fstat(stream.fileno()).st_mtime)
        with open(pyc, "rb") as stream:
            header = stream.read(16)
    except OSError as error:
        seen.stale.append(f"{pyc}: cannot be read ({error.strerror})")
        return
    why = staleness(header, text, mtime)
    if why:
        seen.stale.append(f"{pyc}: {why}")
    else:
        seen.good += 1


def _tell(seen: Seen, tag: str, report: Report, say: Callable[..., None]) -> None:
    report.facts.update(
        good=seen.good,
        stale=len(seen.stale),
        uncompiled=len(seen.uncompiled),
        orphans=len(seen.orphans),
    )
    if seen.stale:
        say(
            f"{len(seen.stale)} .pyc files do not match their source: imports compile again, or "
            f"run old code; first: {seen.stale[0]}",
            shorten(seen.stale),
            "compile after the last change of file times: "
            "python -m compileall --invalidation-mode unchecked-hash",
        )
    if len(seen.uncompiled) > UNCOMPILED_LIMIT:
        report.warning(
            f"{len(seen.uncompiled)} sources have no .pyc for {tag}: each start compiles those "
            "that it imports",
            shorten(seen.uncompiled),
            "python -m compileall --invalidation-mode unchecked-hash",
        )
    if seen.orphans:
        report.info(f"{len(seen.orphans)} .pyc files have no source", shorten(seen.orphans))
