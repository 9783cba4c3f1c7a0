"""Installed distributions and their RECORD, parsed by hand: Python 3.7 has no importlib.metadata."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
from dataclasses import dataclass
from typing import Iterable

from .places import site_folders

_BLOCK = 4 << 20


@dataclass(frozen=True)
class Entry:
    """One line of a RECORD; ``size`` is -1 and ``digest`` empty where it says nothing."""

    path: str
    algorithm: str
    digest: str
    size: int


@dataclass(frozen=True)
class Distribution:
    """One ``*.dist-info``. ``site`` is the folder that RECORD's paths are relative to."""

    name: str
    version: str
    site: str
    info: str

    @property
    def label(self) -> str:
        """``numpy 1.26.4``."""
        return f"{self.name} {self.version}"


def installed(sites: Iterable[str]) -> list[Distribution]:
    """All distributions in these folders, by name."""
    found = []
    for site in sites:
        for entry in sorted(os.listdir(site)):
            if entry.endswith(".dist-info"):
                name, _, version = entry[: -len(".dist-info")].partition("-")
                found.append(Distribution(name, version, site, os.path.join(site, entry)))
    return sorted(found, key=lambda dist: (normalized(dist.name), dist.version))


def normalized(name: str) -> str:
    """The name as indexes compare it: ``nvidia_cublas_cu12`` is ``nvidia-cublas-cu12``."""
    return name.lower().replace("_", "-").replace(".", "-")


def version_of(name: str, dists: Iterable[Distribution]) -> str:
    """The installed version of a distribution, or empty."""
    wanted = normalized(name)
    return next((d.version for d in dists if normalized(d.name) == wanted), "")


def asked_for(dist: Distribution, extra: str) -> dict[str, str]:
    """By distribution, the lowest version that an extra of this one asks for: ``==``, ``>=`` or ``~=``."""
    found: dict[str, str] = {}
    path = os.path.join(dist.info, "METADATA")
    if not os.path.isfile(path):
        return found
    with open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if not line.strip():
                break  # the description begins
            match = re.match(r"Requires-Dist: *([\w.-]+)([^;]*);(.*)", line)
            if match and re.search(rf"extra *== *['\"]{re.escape(extra)}['\"]", match.group(3)):
                lowest = re.search(r"(?:==|>=|~=) *([\d.]+)", match.group(2))
                found[normalized(match.group(1))] = lowest.group(1) if lowest else ""
    return found


def record(dist: Distribution) -> list[Entry] | None:
    """The entries of RECORD with absolute paths; None if the distribution has none."""
    path = os.path.join(dist.info, "RECORD")
    if not os.path.isfile(path):
        return None
    entries = []
    with open(path, encoding="utf-8", newline="") as stream:
        for row in csv.reader(stream):
            if not row:
                continue
            name, hashed, size = (*row, "", "")[:3]
            algorithm, _, digest = hashed.partition("=")
            entries.append(
                Entry(
                    os.path.normpath(os.path.join(dist.site, name)),
                    algorithm if digest else "",
                    digest,
                    int(size) if size.isdigit() else -1,
                )
            )
    return entries


def version_by_record(path: str) -> str | None:
    """The version of the distribution that a file belongs to, if it is the one of its RECORD."""
    name = os.path.basename(path)
    for dist in installed(site_folders()):
        for entry in record(dist) or ():
            if os.path.basename(entry.path) == name and os.path.realpath(entry.path) == path:
                same = entry.digest and digest(path, entry.algorithm) == entry.digest.rstrip("=")
                return dist.version if same else None
    return None


def digest(path: str, algorithm: str) -> str:
    """The hash of a file as RECORD writes it. hashlib lets other threads run meanwhile.

    Raises:
        OSError: the file cannot be read.
        ValueError: this Python does not know the algorithm.
    """
    hasher = hashlib.new(algorithm)
    block = bytearray(_BLOCK)
    view = memoryview(block)
    with open(path, "rb", buffering=0) as stream:
        while True:
            count = stream.readinto(view)
            if not count:
                break
            hasher.update(view[:count])
    return base64.urlsafe_b64encode(hasher.digest()).rstrip(b"=").decode("ascii")
