"""Which cells a CI run builds, and the job matrix that says so.

A change under images/<cell>/ concerns that cell. matrix.yaml and templates/ need no rule of their own:
whatever they change for a cell is in its generated files, which are committed. What is generated for no
cell and still decides what an image is, or how it is verified, concerns all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.engine import Completed, run_command
from tfenv.errors import UsageError
from tfenv.versions import agrees

if TYPE_CHECKING:
    from tfenv.model import Cell

#: Jobs that GitHub makes of one matrix: docs.github.com, "Actions limits".
LIMIT = 256
#: Folders and files that concern every cell, and why.
SHARED = {
    "verifier/": "every image is verified by it",
    "builder/tfenv/verify/": "every image is verified by it",
    "builder/tfenv/libraries.py": "says which libraries an image must load",
    "builder/tfenv/facts/libraries.json": "says which libraries an image must load",
    "builder/tfenv/build.py": "makes every image",
    "builder/tfenv/buildx/": "makes every image",
    "builder/tfenv/context.py": "hands every build its inputs",
    "builder/tfenv/rootfs.py": "hands every build its inputs",
    "builder/tfenv/oci.py": "reads every image's digest",
    "builder/tfenv/pipeline/": "makes and verifies every image",
}
#: What is written after a build, and so is no reason for another one.
_OUTPUTS = re.compile(r"images/[^/]+/reports/")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A choice of cells; an empty one of its parts admits all.

    Args:
        bases: e.g. ``debian12``; pythons: e.g. ``3.11``; releases: TensorFlow's, as far as they go: ``2.15``.
        locked: only cells that have a lock.
    """

    bases: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    locked: bool = False


def select(cells: Sequence[Cell], wanted: Wanted, is_locked: Callable[[Cell], bool]) -> tuple[Cell, ...]:
    """The cells that are wanted, in the matrix's order.

    Raises:
        UsageError: something is wanted that no cell of the matrix has, so that a typing error in a
            workflow does not pass as "nothing to do".
    """
    tests: tuple[tuple[str, tuple[str, ...], Callable[[Cell], str], Callable[[str, str], bool]], ...] = (
        ("base", wanted.bases, lambda cell: cell.base.name, str.__eq__),
        ("python", wanted.pythons, lambda cell: cell.python, str.__eq__),
        ("tensorflow", wanted.releases, lambda cell: cell.row.tensorflow, agrees),
    )
    chosen = list(cells)
    for option, values, of, fits in tests:
        there = dict.fromkeys(map(of, cells))
        for value in values:
            if not any(fits(value, has) for has in there):
                raise UsageError(
                    f"no cell has --{option} {value}",
                    remedy=f"there are {', '.join(there)}; what is refused, and why: tfenv list --refused",
                )
        chosen = [cell for cell in chosen if not values or any(fits(value, of(cell)) for value in values)]
    return tuple(cell for cell in chosen if not wanted.locked or is_locked(cell))


def changed(cells: Iterable[Cell], paths: Iterable[str]) -> tuple[Cell, ...]:
    """The cells that a change concerns.

    Args:
        paths: what was changed, added or removed, relative to the folder of matrix.yaml.
    """
    own: set[str] = set()
    for path in paths:
        if any(path == shared or (shared.endswith("/") and path.startswith(shared)) for shared in SHARED):
            return tuple(cells)
        if path.startswith("images/") and not _OUTPUTS.match(path):
            own.add(path.split("/")[1])
    return tuple(cell for cell in cells if cell.name in own)


def changed_paths(
    folder: Path, ref: str, run: Callable[[Sequence[str]], Completed] = run_command
) -> tuple[str, ...]:
    """What the working tree changes since it left ``ref``, as paths relative to ``folder``.

    Raises:
        UsageError: git does not know the commit, or no commit that both have in common.
    """
    since = ["diff", "--name-only", "-z", "--relative", "--merge-base", "--end-of-options", ref, "--"]
    new = ["ls-files", "-z", "--others", "--exclude-standard"]
    found: list[str] = []
    for arguments in (since, new):
        done = run(["git", "-C", str(folder), *arguments])
        if done.returncode:
            raise UsageError(
                f"git cannot tell what has changed since {ref}: {done.stderr.strip() or 'no word'}",
                remedy="fetch the whole history (git fetch --unshallow; fetch-depth: 0 of the checkout "
                "action), and name a branch or commit that exists",
            )
        found += [path for path in done.stdout.split("\0") if path]
    return tuple(dict.fromkeys(found))


def parse_part(text: str) -> tuple[int, int]:
    """``2/7`` -> (2, 7): the second of seven parts. Raises UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    part, parts = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part <= parts:
        raise UsageError(f"--part {text} is no part", remedy="give K/N with K from 1 to N, e.g. --part 1/2")
    return part, parts


def part_of(cells: Sequence[Cell], part: int, parts: int) -> tuple[Cell, ...]:
    """Every ``parts``-th cell from ``part`` (1 is first) on; all parts together are all cells, each once."""
    return tuple(cells[part - 1 :: parts])


def github_matrix(cells: Sequence[Cell], runner: str) -> dict[str, list[dict[str, str]]]:
    """The ``strategy.matrix`` of a GitHub Actions job, one job a cell.

    Args:
        runner: label of the machine that each job runs on.

    Raises:
        UsageError: there are more cells than jobs.
    """
    if len(cells) > LIMIT:
        parts = -(-len(cells) // LIMIT)
        raise UsageError(
            f"{len(cells)} cells are more than the {LIMIT} jobs that GitHub makes of a matrix",
            remedy=f"take a part of them in each run (--part 1/{parts}), or fewer: --base, --python, "
            "--tensorflow, --changed-since",
        )
    return {
        "include": [
            {
                "cell": cell.name,
                "tensorflow": cell.row.tensorflow,
                "python": cell.python,
                "base": cell.base.name,
                "runner": runner,
            }
            for cell in cells
        ]
    }
