"""Leaves files out of a site-packages folder and keeps every RECORD true to what is there.

usage: trim.py SITE_PACKAGES [GLOB ...] [--keep GLOB ...]

Globs are matched against paths relative to SITE_PACKAGES; ``**`` crosses folders, ``*`` and ``?`` do not.
What a RECORD names outside of the folder (scripts, as ../../../bin/x) stays, and so does the RECORD itself.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

Matcher = Callable[[str], bool]


def pattern(glob: str) -> str:
    """The regular expression of a glob in which only ``**`` crosses folders."""
    parts = re.split(r"(\*\*|\*|\?)", glob)
    return "".join({"**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in parts)


def matcher(globs: list[str]) -> Matcher:
    """A function that says whether a path matches one of the globs."""
    expression = re.compile("|".join(map(pattern, globs)) if globs else r"(?!)")
    return lambda path: expression.fullmatch(path) is not None


def is_inside(name: str) -> bool:
    """Whether a path of a RECORD is below SITE_PACKAGES."""
    return not name.startswith("/") and ".." not in name.split("/")


def prune_empty(folder: Path, stop: Path) -> None:
    """Remove a folder and its parents below ``stop`` while they are empty."""
    while folder != stop and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def trim(site: Path, drop: Matcher, keep: Matcher) -> int:
    """Remove what ``drop`` matches and ``keep`` does not; rewrite the RECORDs; return bytes freed."""
    freed = 0
    for record in sorted(site.glob("*.dist-info/RECORD")):
        with record.open(newline="") as file:
            rows = list(csv.reader(file))
        kept = []
        for row in rows:
            name = row[0] if row else ""
            path = site / name
            if path == record or not is_inside(name) or not drop(name) or keep(name):
                kept.append(row)
            elif os.path.lexists(path):  # else another distribution with the same file came first
                freed += path.lstat().st_size
                path.unlink()
                prune_empty(path.parent, site)
        if len(kept) != len(rows):
            with record.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(kept)
    return freed


def main(arguments: list[str]) -> None:
    """Parse the command line and trim."""
    site, *globs = arguments
    cut = globs.index("--keep") if "--keep" in globs else len(globs)
    freed = trim(Path(site), matcher(globs[:cut]), matcher(globs[cut + 1 :]))
    print(f"trimmed {freed / 1e6:.0f} MB from {site}")


if __name__ == "__main__":
    main(sys.argv[1:])
