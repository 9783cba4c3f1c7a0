"""Which wheels a Python on a platform accepts, and in which order: the tags of PEP 425 and 600."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfenv.errors import UsageError

if TYPE_CHECKING:
    from packaging.tags import Tag


def supported_tags(python: str, platform: str) -> dict[Tag, int]:
    """Each wheel tag that this Python on this platform accepts, with its rank (0 is best)."""
    from packaging.tags import compatible_tags, cpython_tags

    major, minor = (int(part) for part in python.split("."))
    nodot = f"cp{major}{minor}"
    abi = f"{nodot}m" if (major, minor) < (3, 8) else nodot
    platforms = list(_platforms(platform))
    ordered = [
        *cpython_tags((major, minor), abis=[abi], platforms=platforms),
        *compatible_tags((major, minor), interpreter=nodot, platforms=platforms),
    ]
    ranks: dict[Tag, int] = {}
    for rank, tag in enumerate(ordered):
        ranks.setdefault(tag, rank)
    return ranks


def _platforms(platform: str) -> Iterator[str]:
    """Platform tags of ``x86_64-manylinux_2_36``, the newest glibc first, with the old names."""
    match = re.fullmatch(r"(\w+)-manylinux_2_(\d+)", platform)
    if not match:
        raise UsageError(
            f"platform {platform!r} is not of the form <architecture>-manylinux_2_<minor>",
            remedy="give one like x86_64-manylinux_2_36",
        )
    arch, newest = match[1], int(match[2])
    # PEP 600's names for the platforms of PEP 513, 571 and 599.
    legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    for minor in range(newest, 4, -1):
        yield f"manylinux_2_{minor}_{arch}"
        if minor in legacy:
            yield f"{legacy[minor]}_{arch}"
    yield f"linux_{arch}"
