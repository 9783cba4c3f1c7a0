"""What an image is said to be: the suite holds it to that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tfenv.errors import IntegrityError
from tfenv.facts import Compiled, Library
from tfenv.libraries import only_by_wheel, with_wheel
from tfenv.model import Cell, Lock

# Where a cell's CUDA libraries may come from, by its CUDA source: nothing else may be loaded.
CUDA_FOLDERS: dict[str, tuple[str, ...]] = {
    "wheels": ("/opt/tfenv/cuda",),
    "base": ("/usr/local/cuda", "/usr/lib/x86_64-linux-gnu"),
}
#: Nothing is said of an image that is none of ours: the suite takes TensorFlow's own word for what it was
#: compiled for, and holds what is loaded to that.
FOREIGN: Mapping[str, Any] = {"format": 1}
_WHEELS = "/opt/tfenv/cuda/nvidia"
_COMPILER = "nvidia-cuda-nvcc-cu"


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

    Args:
        libraries: what ``libraries.opened`` says.

    Raises:
        IntegrityError: the lock lacks the wheel of a library that TensorFlow opens.
    """
    versions = {wheel.name: wheel.version for wheel in lock.wheels}
    left_out = {rule.what for rule in lock.without}
    wanted = [library for library in libraries if library.wheel not in left_out]
    wanted += [library for library in with_wheel(cell.cuda_set.cuda) if library.wheel in versions]
    absent = [library for library in wanted if _absent(library, lock, versions)]
    wanted = [library for library in wanted if library not in absent]
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
            "nccl": {
                "version": compiled.nccl,
                "how": compiled.nccl_how,
                "sass": list(compiled.nccl_sass),
            },
            "sass": list(compiled.sass),
            "ptx": [
                {"what": rule.what, "from": rule.since, "until": rule.until or "", "isa": rule.isa}
                for rule in compiled.ptx
            ],
            "unusable": [
                {"what": rule.what, "from": rule.since, "why": rule.why} for rule in compiled.unusable
            ],
        },
        "packages": sorted(versions),
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
        "absent": [
            {"what": library.soname, "why": f"neither base nor wheels bring it: {library.why}"}
            for library in absent
        ],
        "ptxas": next((v for name, v in versions.items() if name.startswith(_COMPILER)), ""),
        "cuda_from": lock.cuda_from,
        "cuda_folders": [*CUDA_FOLDERS[lock.cuda_from], *_tool_folders(cell, lock)],
        "unused": _unused(cell, lock),
        "record": {"exact": True},
        "keep": [{"what": rule.what, "why": rule.why} for rule in lock.keep],
    }


def _absent(library: Library, lock: Lock, versions: Mapping[str, str]) -> bool:
    """Whether an image with its own CUDA lacks a library that only a wheel could bring."""
    by_wheel = lock.cuda_from == "base" and library.name in only_by_wheel()
    return by_wheel and library.wheel not in versions


def _tool_folders(cell: Cell, lock: Lock) -> list[str]:
    """Where the wheels are that stand beside an image's own CUDA: ptxas, CUPTI, and no others."""
    if lock.cuda_from != "base":
        return []
    names = sorted(re.split(r"[=<>~! ]", tool, maxsplit=1)[0] for tool in cell.cuda_set.tools)
    plain = [re.sub(r"^nvidia-|-cu[0-9]+$", "", name) for name in names]
    return [f"{_WHEELS}/{name.replace('-', '_')}" for name in plain]


def _unused(cell: Cell, lock: Lock) -> list[dict[str, str]]:
    """What a CUDA image without libraries has of its own: its runtime, which nothing may load."""
    if cell.base.kind != "nvidia" or lock.cuda_from != "wheels":
        return []
    why = "the image's own CUDA runtime; the wheels' is found first"
    return [{"what": "/usr/local/cuda-*/libcudart.so*", "why": why}]
