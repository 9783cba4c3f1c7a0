"""Installed files are those that each wheel's RECORD names: all there, none changed."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Iterable

from ..context import Context
from ..distributions import Distribution, Entry, digest, installed, normalized, record
from ..places import site_folders, walk
from ..protocol import Report, shorten

_THREADS = min(8, (os.cpu_count() or 1) + 1)


def check(_context: Context, report: Report) -> None:
    """Every installed file has the hash and size that its wheel's RECORD says."""
    inspect(site_folders(), report)


def inspect(sites: Iterable[str], report: Report) -> None:
    """Compare all distributions in these folders with their RECORDs, both ways."""
    folders = list(sites)
    dists = installed(folders)
    twice(dists, report)
    owned: list[tuple[Distribution, Entry]] = []
    bare = []
    for dist in dists:
        entries = record(dist)
        if entries is None:
            bare.append(dist.label)
        owned += [(dist, entry) for entry in entries or ()]
    if bare:
        report.info(
            f"{len(bare)} distributions have no RECORD: nothing can be said about their files",
            shorten(bare),
        )
    report.facts["distributions"] = len(dists)
    hashes(owned, report)
    strangers(folders, [entry.path for _, entry in owned], report)


def twice(dists: Iterable[Distribution], report: Report) -> None:
    """Two versions of one distribution: which one is imported is a matter of luck."""
    found: dict[str, list[str]] = {}
    for dist in dists:
        found.setdefault(normalized(dist.name), []).append(f"{dist.version} in {dist.site}")
    for name, places in sorted(found.items()):
        if len(places) > 1:
            report.error(
                f"{name} is installed {len(places)} times",
                "\n".join(places),
                f"remove all but one: pip uninstall {name}, then install it again",
            )


def hashes(owned: Iterable[tuple[Distribution, Entry]], report: Report) -> None:
    """Every recorded file is there with its size and hash. Large files first, on all CPUs."""
    items = sorted(owned, key=lambda item: -item[1].size)
    with ThreadPoolExecutor(_THREADS) as pool:
        troubles = list(pool.map(lambda item: (*item, trouble(item[1])), items))
    bad: dict[str, list[str]] = {}
    for dist, entry, what in troubles:
        if what:
            bad.setdefault(dist.label, []).append(f"{entry.path}: {what}")
    for label, lines in sorted(bad.items()):
        report.error(
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
    known = {
        os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in _distinct(recorded)
    }
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


def _distinct(paths: Iterable[str]) -> list[str]:
    return sorted(set(paths))
