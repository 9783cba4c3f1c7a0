"""Version numbers are compared as versions, never as text: 2.9 comes before 2.15."""

from __future__ import annotations

from functools import lru_cache

from packaging.version import Version


@lru_cache(maxsize=4096)  # the matrix page asks for some hundred thousand comparisons
def order(version: str) -> Version:
    """The sort key of a version such as ``2.15.1``, ``2.15.0.post1`` or ``2.22.0rc0``."""
    return Version(version)


def minor(version: str) -> str:
    """The minor release that a release belongs to: ``2.15.1`` -> ``2.15``."""
    release = order(version).release
    return f"{release[0]}.{release[1] if len(release) > 1 else 0}"


def major(version: str) -> str:
    """The first number of a version: ``12.2`` -> ``12``."""
    return str(order(version).release[0])


def is_final(version: str) -> bool:
    """Whether a version is a release (or a post-release of one), not a candidate for one."""
    return not Version(version).is_prerelease


def agrees(declared: str, exact: str) -> bool:
    """Whether a declared version is the exact one, as far as it goes: ``8.9`` agrees with ``8.9.4``."""
    wanted = declared.split(".")
    return exact.split(".")[: len(wanted)] == wanted
