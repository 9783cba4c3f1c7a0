"""Why two files of one name differ: each cause one function in ``CAUSES``, which says what it accounts for.

A difference is explained when every aspect of it has a cause. What a program would notice has none: other
code, another mode, an owner of one file alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from .tree import Entry

#: What may differ; ``presence`` is that of the file itself.
ASPECTS = ("presence", "kind", "content", "mode", "owner", "time", "link", "device", "attributes")


@dataclass(frozen=True)
class Layers:
    """The two layers that a file is in, for causes that look beyond it: entries by path."""

    before: Mapping[str, Entry]
    after: Mapping[str, Entry]

    @cached_property
    def owners(self) -> frozenset[tuple[str, str]]:
        """Every pair of owners that a path has had, before and after."""
        common = self.before.keys() & self.after.keys()
        return frozenset((self.before[path].owner, self.after[path].owner) for path in common)


@dataclass(frozen=True)
class Change:
    """A path in a layer, ``before`` in the snapshot and ``after`` in the rebuild; None where it is not."""

    path: str
    before: Entry | None
    after: Entry | None
    layers: Layers

    @property
    def aspects(self) -> frozenset[str]:
        """What differs; nothing where both are the same."""
        a, b = self.before, self.after
        if a is None or b is None:
            return frozenset() if a is b else frozenset({"presence"})
        pairs = {
            "kind": (a.kind, b.kind),
            "content": ((a.sha256, a.size), (b.sha256, b.size)),
            "mode": (a.mode, b.mode),
            "owner": (a.owner, b.owner),
            "time": (a.time, b.time),
            "link": (a.link, b.link),
            "device": (a.device, b.device),
            "attributes": (a.attributes, b.attributes),
        }
        return frozenset(name for name, (x, y) in pairs.items() if x != y)


@dataclass(frozen=True)
class Cause:
    """A reason: ``name``, what to say of it, and the aspects of a change that it accounts for."""

    name: str
    why: str
    accounts_for: Callable[[Change], frozenset[str]]


_NOTHING: frozenset[str] = frozenset()
_BYTES = frozenset({"presence", "content", "time"})


def _matching(pattern: str) -> Callable[[Change], frozenset[str]]:
    """Files that no program's result depends on: also their being there."""
    compiled = re.compile(pattern)

    def accounts_for(change: Change) -> frozenset[str]:
        files = all(entry.kind == "file" for entry in (change.before, change.after) if entry)
        return _BYTES if files and compiled.fullmatch(change.path) else _NOTHING

    return accounts_for


def _pyc(change: Change) -> frozenset[str]:
    """The interpreter's copy of a source that is the same in both."""
    found = re.fullmatch(r"(?:(.*)/)?__pycache__/([^/]+?)\.[a-z]+-\d+(?:\.opt-\d)?\.pyc", change.path)
    if not found:
        return _NOTHING
    source = f"{found[1]}/{found[2]}.py".lstrip("/") if found[1] else f"{found[2]}.py"
    before, after = change.layers.before.get(source), change.layers.after.get(source)
    same = before is not None and after is not None and before.sha256 == after.sha256
    return _BYTES if same else _NOTHING


def _time(_change: Change) -> frozenset[str]:
    return frozenset({"time"})


def _time_inside(change: Change) -> frozenset[str]:
    a, b = change.before, change.after
    same = a is not None and b is not None and a.core and a.core == b.core
    return frozenset({"content"}) if same else _NOTHING


def _owner(change: Change) -> frozenset[str]:
    """The whole layer has changed hands, one for one: another user built it."""
    pairs = change.layers.owners
    one_for_one = len({a for a, _ in pairs}) == len(pairs) == len({b for _, b in pairs})
    return frozenset({"owner"}) if one_for_one else _NOTHING


def _umask(change: Change) -> frozenset[str]:
    """Permissions that only a umask decides, and that nobody gained write access to all by."""
    a, b = change.before, change.after
    if a is None or b is None or "link" in (a.kind, b.kind):
        return _NOTHING
    only_umask = (a.mode ^ b.mode) & ~0o077 == 0 and not (a.mode ^ b.mode) & 0o002
    return frozenset({"mode"}) if only_umask else _NOTHING


def _hard_link(change: Change) -> frozenset[str]:
    """One side stores the same bytes twice, the other once and a link."""
    a, b = change.before, change.after
    if a is None or b is None or {a.kind, b.kind} != {"file", "hard link"}:
        return _NOTHING
    linked, plain, side = (
        (a, b, change.layers.before) if a.kind == "hard link" else (b, a, change.layers.after)
    )
    target = side.get(linked.link)
    same = target is not None and target.sha256 == plain.sha256
    return frozenset({"kind", "content", "link"}) if same else _NOTHING


def _snapshotter(change: Change) -> frozenset[str]:
    """Marks of an overlay, and folders that are named on the way to a file."""
    marks = all(
        name.startswith(("trusted.overlay.", "user.overlay.")) for name in _changed_attributes(change)
    )
    found = frozenset({"attributes"}) if marks else _NOTHING
    opaque = change.path.rpartition("/")[2] == ".wh..wh..opq"
    return found | {"presence"} if opaque else found


def _changed_attributes(change: Change) -> set[str]:
    a, b = change.before, change.after
    if a is None or b is None:
        return set()
    pairs = set(a.attributes) ^ set(b.attributes)
    return {name.removeprefix("SCHILY.xattr.").removeprefix("LIBARCHIVE.xattr.") for name, _ in pairs}


CAUSES: tuple[Cause, ...] = (
    Cause("time stamp", "the file's time differs, its bytes do not", _time),
    Cause("time inside", "a time in the file's own header (.pyc, .gz)", _time_inside),
    Cause("pyc", "bytecode of the same source, compiled or written another way", _pyc),
    Cause("log", "a log of the build itself", _matching(r"var/log/.*|(?:.*/)?[^/]+\.log|root/\..*_history")),
    Cause(
        "cache",
        "a cache, which programs make anew",
        _matching(r"var/cache/.*|(?:root|home/[^/]+)/\.cache/.*|var/lib/apt/lists/.*|etc/ld\.so\.cache"),
    ),
    Cause(
        "machine",
        "an identity or name that the building machine gave",
        _matching(r"etc/(?:machine-id|hostname|hosts|resolv\.conf|mtab)|var/lib/dbus/machine-id|\.dockerenv"),
    ),
    Cause(
        "package manager",
        "a backup or date that the package manager keeps",
        _matching(
            r"var/lib/dpkg/[^/]+-old|etc/(?:passwd|group|shadow|gshadow|subuid|subgid)-|etc/\.pwd\.lock"
            r"|var/lib/(?:dpkg|apt)/(?:.*/)?lock(?:-frontend)?|var/lib/apt/extended_states"
        ),
    ),
    Cause(
        "installer",
        "a note of the installer of Python packages on itself",
        _matching(
            r"(?:.*/)?[^/]+\.dist-info/(?:RECORD|INSTALLER|REQUESTED|direct_url\.json|uv_[a-z_]+\.json)"
        ),
    ),
    Cause(
        "owner", "the whole layer belongs to another user, as where the builder has one of its own", _owner
    ),
    Cause("mode", "permissions as another umask gives them", _umask),
    Cause("hard link", "the same bytes stored once and linked, or twice", _hard_link),
    Cause("snapshotter", "a mark of the builder's overlay file system", _snapshotter),
)


@dataclass(frozen=True)
class Judged:
    """A change with its causes; ``left`` are the aspects that none accounts for."""

    change: Change
    causes: tuple[str, ...]
    left: tuple[str, ...]


def judge(change: Change) -> Judged:
    """Name the causes of a change: the first that accounts for an aspect gets it."""
    left, names = set(change.aspects), []
    for cause in CAUSES:
        taken = left & cause.accounts_for(change)
        if taken:
            names.append(cause.name)
            left -= taken
    return Judged(change, tuple(names), tuple(sorted(left, key=ASPECTS.index)))
