"""Which files differ: what was meant first, what every build moves last."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .model import Change, Entry

#: What differs for no reason that anybody has: said last.
_NOISE = (
    re.compile(r"(?:.*/)?__pycache__/.*|.*\.py[co]"),
    re.compile(r"var/(?:log|cache|tmp|lib/(?:apt|dpkg|systemd|ucf))/.*|tmp/.*|root/\.cache/.*"),
    re.compile(r"etc/(?:ld\.so\.cache|machine-id|hostname|hosts|resolv\.conf)|.*/RECORD|\.dockerenv"),
)
_PACKAGES = re.compile(r"(?:.*/)?(?:site|dist)-packages/(?:(nvidia/[^/]+)|([^/]+))(?:/.*)?")
_CUDA = re.compile(r"opt/tfenv/cuda/(nvidia/[^/]+|[^/]+)(?:/.*)?")
_VERSIONED = re.compile(r"(?:-[0-9][^/]*)?\.(?:dist-info|egg-info|libs|data)$|\.py$|(?:\.[^/]*)?\.so$")


def is_noise(path: str) -> bool:
    """Whether a file differs in every build, or is no part of what was asked for."""
    return any(pattern.fullmatch(path) for pattern in _NOISE)


def group(path: str) -> str:
    """What a file belongs to: a Python package, a CUDA library, or the folders above it."""
    match = _PACKAGES.fullmatch(path)
    name = (match[1] or match[2]) if match else ""
    if not name and (match := _CUDA.fullmatch(path)):
        name = match[1]
    if name:
        return _VERSIONED.sub("", name).lower().replace("-", "_")
    return "/".join(path.split("/")[:3][: max(path.count("/"), 1)])


def compare_files(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> tuple[Change, ...]:
    """One change for each file; folders count only where they are a file on the other side, or by owner
    and mode. Times are not compared: they change nothing."""
    found = []
    for path in before.keys() | after.keys():
        one, other = before.get(path), after.get(path)
        if one == other:
            continue
        if one is None or other is None:
            only = one or other
            if only is not None and only.kind == "d":
                continue
            found.append(
                Change(path, "removed", _told(one), "") if one else Change(path, "added", "", _told(other))
            )
        else:
            found.append(Change(path, "changed", *_what(one, other)))
    found.sort(key=lambda change: (is_noise(change.name), group(change.name), change.name))
    return tuple(found)


_WORDS = {"f": "a file", "d": "a folder", "l": "a link", "o": "a device or pipe"}


def _told(entry: Entry | None) -> str:
    if entry is None:
        return ""
    return f"-> {entry.content}" if entry.kind == "l" else f"{entry.size} bytes"


def _what(one: Entry, other: Entry) -> tuple[str, str]:
    """The first thing that tells two files apart."""
    if one.kind != other.kind:
        return _WORDS[one.kind], _WORDS[other.kind]
    if one.content != other.content:
        if one.kind == "l":
            return f"-> {one.content}", f"-> {other.content}"
        same_size = one.size == other.size
        return f"{one.size} bytes", f"{other.size} bytes" + (", another content" if same_size else "")
    if one.owner != other.owner:
        return f"owner {one.owner}", f"owner {other.owner}"
    return f"mode {one.mode:o}", f"mode {other.mode:o}"
