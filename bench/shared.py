"""How many bytes the recorded images take, by CUDA set: apart, and with every layer stored once.

usage: .venv/bin/python bench/shared.py
"""

from __future__ import annotations

from collections import defaultdict

from tfenv import digest
from tfenv.digest import Digest
from tfenv.sharing import shared
from tfenv.workspace import here


def main() -> None:
    """Print one line per CUDA set of which more than one image is recorded, and one for all."""
    workspace = here()
    sets: dict[str, dict[str, Digest]] = defaultdict(dict)
    for cell in workspace.matrix.cells:
        if cell.cuda_from == "wheels" and (recorded := digest.read(workspace.folder(cell))):
            sets[cell.cuda_set.name][cell.name] = recorded
    groups = {name: list(images.values()) for name, images in sorted(sets.items())}
    groups["all"] = [recorded for images in groups.values() for recorded in images]
    for name, images in groups.items():
        of = shared(images)
        gigabytes = [f"{size / 1e9:.2f}" for size in (of.apart, of.together, of.common)]
        print(
            f"{name}: {len(images)} images, {gigabytes[0]} GB apart, {gigabytes[1]} GB together, "
            f"{gigabytes[2]} GB in common"
        )


if __name__ == "__main__":
    main()
