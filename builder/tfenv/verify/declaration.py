"""What an image is said to be: the suite holds it to that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfenv.errors import IntegrityError
from tfenv.facts import Compiled, Library
from tfenv.model import Cell, Lock

# Where a cell's CUDA libraries may come from, by its CUDA source: nothing else may be loaded.
CUDA_FOLDERS: dict[str, tuple[str, ...]] = {
    "wheels": ("/opt/tfenv/cuda",),
    "base": ("/usr/local", "/usr/lib"),
}


def declared_for(
    cell: Cell,
    lock: Lock,
    compiled: Compiled,
    libraries: Iterable[Library],
    *,
    image: str = "",
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What the image is said to be, for ``declared.json``.

    Raises:
        IntegrityError: the lock lacks the wheel of a library that TensorFlow opens.
    """
    versions = {wheel.name: wheel.version for wheel in lock.wheels}
    left_out = {rule.what for rule in lock.without}
    wanted = [library for library in libraries if library.wheel not in left_out]
    missing = sorted({library.wheel for library in wanted} - versions.keys())
    if lock.cuda_from == "wheels" and missing:
        raise IntegrityError(
            f"the lock of {cell.name} lacks {', '.join(missing)}, which TensorFlow opens",
            remedy=f"run `tfenv lock {cell.name}`, or name the wheel under `without` with the reason",
        )
    return {
        "format": 1,
        "cell": cell.name,
        "image": image,
        "tensorflow": cell.row.tensorflow,
        "python": cell.python,
        "cuda": cell.cuda_set.cuda,
        "cudnn": cell.cuda_set.cudnn,
        "compiled": {
            "cuda": compiled.cuda,
            "cudnn": compiled.cudnn,
            "nccl": {"version": compiled.nccl, "how": compiled.nccl_how},
        },
        "libraries": [
            {
                "name": library.name,
                "soname": library.soname,
                "version": versions.get(library.wheel, ""),
                "wheel": library.wheel,
                "why": library.why,
            }
            for library in wanted
        ],
        "env": dict(environment or {}),
        "cuda_from": lock.cuda_from,
        "cuda_folders": list(CUDA_FOLDERS[lock.cuda_from]),
        "record": {"exact": True},
        "keep": [{"what": rule.what, "why": rule.why} for rule in lock.keep],
    }
