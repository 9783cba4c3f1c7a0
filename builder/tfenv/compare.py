"""Where two archives of one cell differ, and why: which layers, which files in them, and what explains it."""

from __future__ import annotations

from pathlib import Path

from tfenv import oci
from tfenv.snapshot.comparing import compare, line
from tfenv.snapshot.sides import Image
from tfenv.snapshot.tree import read_tree

_SHOWN = 20


def image_of(archive: oci.Archive, builder: str = "") -> Image:
    """One side of a comparison; the archive's files are read when they are asked for.

    Args:
        builder: what built it, as ``digest.Digest.builder`` has it.
    """
    return Image(
        manifest_digest=archive.manifest_digest,
        config_digest=archive.config_digest,
        diff_ids=archive.diff_ids,
        manifest=lambda: archive.manifest,
        config=lambda: archive.config,
        tree=lambda: read_tree(archive.path),
        builder=builder,
    )


def differences(first: Path, second: Path) -> tuple[str, ...]:
    """One line for each thing that differs: where, in what, and the cause; what has none comes first."""
    found = compare(image_of(oci.describe(first)), image_of(oci.describe(second))).differences
    return tuple(line(one) for one in sorted(found, key=lambda one: one.explained))


def explain(first: Path, second: Path) -> str:
    """``differences`` as text, cut after the first few."""
    lines = differences(first, second) or ("nothing that is visible in the archives",)
    more = [f"... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join(f"  {line}" for line in (*lines[:_SHOWN], *more))
