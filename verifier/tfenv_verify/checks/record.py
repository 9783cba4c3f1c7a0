"""Installed files are those that each wheel's RECORD names: all there, none changed, no others."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Iterable

from ..context import Context
from ..declared import Declared
from ..distributions import Distribution, Entry, digest, installed, normalized, record
from ..places import site_folders, walk
from ..protocol import Report, shorten

_THREADS = min(8, (os.cpu_count() or 1) + 1)


_NOTHING = Declared()
# What is in no RECORD and right nevertheless, relative to the virtual environment's folder; where
# the second is True, only as a link.
_VENV: tuple[tuple[str, bool], ...] = (
    ("pyvenv.cfg", False),
    (".gitignore", False),  # from Python 3.13 on
    ("bin/activate", False),
    ("bin/activate.*", False),
    ("bin/Activate.ps1", False),
    ("bin/python*", True),
    ("lib64", True),
)


def check(context: Context, report: Report) -> None:
    """Every installed file has the hash and size that its wheel's RECORD says."""
    prefix = os.path.realpath(sys.prefix) if sys.prefix != sys.base_prefix else ""
    inspect(site_folders(), report, context.declared, prefix)


def inspect(sites: Iterable[str], report: Report, declared: Declared = _NOTHING, prefix: str = "") -> None:
    """Compare all distributions in these folders with their RECORDs, both ways.

    Args:
        prefix: the folder of the virtual environment, if it is one.
    """
    folders = list(sites)
    dists = installed(folders)
    # An image that declares nothing may have changed what it installed: worth knowing, not wrong.
    say = report.warning if declared.foreign else report.error
    twice(dists, report, say)
    owned: list[tuple[Distribution, Entry]] = []
    bare = []
    for dist in dists:
        entries = record(dist)
        if entries is None:
            bare.append(dist.label)
        owned += [(dist, entry) for entry in entries or ()]
    if bare:
        (report.info if declared.foreign else report.error)(
            f"{len(bare)} distributions have no RECORD: nothing can be said about their files",
            shorten(bare),
            "install them as wheels: rebuild the image from its lock",
        )
    report.facts["distributions"] = len(dists)
    hashes(owned, report, say)
    recorded = [entry.path for _, entry in owned]
    if declared.record_exact:
        unhashed(owned, report)
        unrecorded(folders, prefix, recorded, report)
    else:
        strangers(folders, recorded, report)


def twice(dists: Iterable[Distribution], report: Report, say: Callable[..., None] | None = None) -> None:
    """Two versions of one distribution: which one is imported is a matter of luck."""
    found: dict[str, list[str]] = {}
    for dist in dists:
        found.setdefault(normalized(dist.name), []).append(f"{dist.version} in {dist.site}")
    for name, places in sorted(found.items()):
        if len(places) > 1:
            (say or report.error)(
                f"{name} is installed {len(places)} times",
                "\n".join(places),
                f"remove all but one: pip uninstall {name}, then install it again",
            )


def hashes(
    owned: Iterable[tuple[Distribution, Entry]], report: Report, say: Callable[..., None] | None = None
) -> None:
    """Every recorded file is there with its size and hash. Large files first, on all CPUs."""
    items = sorted(owned, key=lambda item: -item[1].size)
    with ThreadPoolExecutor(_THREADS) as pool:
        troubles = list(pool.map(lambda item: (*item, trouble(item[1])), items))
    bad: dict[str, list[str]] = {}
    for dist, entry, what in troubles:
        if what:
            bad.setdefault(dist.label, []).append(f"{entry.path}: {what}")
    for label, lines in sorted(bad.items()):
        (say or report.error)(
            f"{label}: {len(lines)} files are not those of its RECORD; first: {sorted(lines)[0]}",
            shorten(sorted(lines)),
            "rebuild the image, or in place: pip install --force-reinstall --no-deps "
            + label.replace(" ", "=="),
        )
    report.facts["files"] = len(items)
    report.facts["bytes"] = sum(max(0, entry.size) for _, entry in items)


def trouble(entry: Entry) -> str:
    """What is wrong with one recorded file; empty if nothing."""
    try:
        size = os.stat(entry.path).st_size
    except OSError as error:
        # pip records the .pyc files it makes; an image may drop or remake them (check pyc).
        return "" if entry.path.endswith(".pyc") else f"missing ({error.strerror})"
    if not entry.digest or entry.path.endswith(".pyc"):
        return ""
    if entry.size >= 0 and size != entry.size:
        return f"{size} bytes, recorded {entry.size}"
    try:
        found = digest(entry.path, entry.algorithm)
    except (OSError, ValueError) as error:
        return f"cannot be hashed: {error}"
    if found == entry.digest.rstrip("="):
        return ""
    return f"{entry.algorithm} {found}, recorded {entry.digest}"


def strangers(folders: Iterable[str], recorded: Iterable[str], report: Report) -> None:
    """Files in package folders that no RECORD names: overlays, patches, leftovers."""
    known = _resolved(recorded)
    found: list[str] = []
    for site in folders:
        packages = {
            path[len(site) + 1 :].split(os.sep)[0]
            for path in known
            if path.startswith(site + os.sep) and os.sep in path[len(site) + 1 :]
        }
        for package in sorted(packages - {"__pycache__"}):
            for folder, inner, files in walk(os.path.join(site, package)):
                inner[:] = [name for name in inner if name != "__pycache__"]
                found += [
                    os.path.join(folder, name)
                    for name in files
                    if not name.endswith(".pyc") and os.path.join(folder, name) not in known
                ]
    report.facts["unrecorded_files"] = len(found)
    if found:
        counts = Counter(os.path.dirname(path) for path in found)
        report.info(
            f"{len(found)} files in package folders are in no RECORD",
            shorten([f"{folder}: {count}" for folder, count in counts.most_common()]),
        )


def unhashed(owned: Iterable[tuple[Distribution, Entry]], report: Report) -> None:
    """Each RECORD has a hash for every file but itself and byte code."""
    found = [
        entry.path
        for dist, entry in owned
        if not entry.digest
        and not entry.path.endswith(".pyc")
        and entry.path != os.path.join(dist.info, "RECORD")
    ]
    if found:
        report.error(
            f"{len(found)} files have no hash in their RECORD: nobody would see that they are changed",
            shorten(sorted(found)),
            "rebuild the image from its lock",
        )


def unrecorded(folders: Iterable[str], prefix: str, recorded: Iterable[str], report: Report) -> None:
    """In an exact image every file of the environment is in a RECORD, but for the environment's own."""
    sites = list(folders)
    tops = [*sites, *([prefix] if prefix else [])]
    known = _resolved(recorded)
    found = [
        path
        for top in tops
        if not any(top.startswith(other + os.sep) for other in tops)
        for path in _files_and_links(top)
        if path not in known and not _own(path, sites, prefix)
    ]
    report.facts["unrecorded_files"] = len(found)
    if found:
        report.error(
            f"{len(found)} files are in no RECORD; first: {found[0]}",
            shorten(found),
            "rebuild the image from its lock; what it shall have besides, install as a wheel",
        )


def _files_and_links(top: str) -> Iterable[str]:
    """All files, and the links to folders, which are not followed."""
    for folder, inner, files in walk(top):
        yield from (os.path.join(folder, name) for name in files)
        yield from (path for path in (os.path.join(folder, name) for name in inner) if os.path.islink(path))


def _own(path: str, sites: list[str], prefix: str) -> bool:
    """Byte code, which the check ``pyc`` looks at, and what makes the environment one."""
    folder, name = os.path.split(path)
    if os.path.basename(folder) == "__pycache__":
        return name.endswith(".pyc")
    if folder in sites and name == "nvidia":
        return os.path.islink(path) and os.path.dirname(os.path.realpath(path)) in sites
    if folder in sites and name == "tfenv-cuda.pth":
        return _only_names(path, sites)
    relative = os.path.relpath(path, prefix) if prefix else os.pardir
    return any(
        fnmatch.fnmatchcase(relative, pattern)
        and relative.count("/") == pattern.count("/")
        and os.path.islink(path) >= link
        for pattern, link in _VENV
    )


def _only_names(path: str, sites: list[str]) -> bool:
    """Whether a .pth names only folders that were looked at: it can hold code, too."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return all(os.path.realpath(line.strip()) in sites for line in stream if line.strip())


def _resolved(paths: Iterable[str]) -> set[str]:
    """The paths with their folders' links followed, but not their own."""
    return {os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in set(paths)}
