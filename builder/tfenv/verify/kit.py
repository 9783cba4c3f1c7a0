"""The suite in a folder, for a host without tfenv: what to type there, and what to bring back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfenv.files import write_all

from .engine import expecting
from .running import FOLDER
from .suite import Suite, pack
from .workers import PORTS, WORKERS

LINES = "lines"
_PORT = 29400


def write_kit(folder: Path, declared: Mapping[str, Any]) -> None:
    """Write ``verify.pyz`` and ``declared.json``.

    Raises:
        NotReadyError: they cannot be written.
    """
    told = json.dumps(declared, indent=2, sort_keys=True) + "\n"
    write_all(folder, {"verify.pyz": pack(), "declared.json": told})


def kit_commands(name: str, suite: Suite, *, gpus: str = "auto", expect_gpus: int | None = None) -> list[str]:
    """What to type beside the folder ``kit``, on a host where the image is unpacked in ``rootfs``.

    Args:
        name: of the cell, as ``tfenv verify`` takes it, or its option for another image.
        gpus: as of ``--gpus``, what the image gets there. expect_gpus: how many it shall see.
    """
    run = ("python3", "-m", "tfenv.rootfs_run", "--rootfs", "rootfs", "--bind", f"kit:{FOLDER}")
    given = () if gpus in ("auto", "all") else ("--gpus", gpus)
    what = ("--declared", f"{FOLDER}/declared.json", "--suite", suite, *expecting(expect_gpus))
    start = (*run, *given, "--", "python", "-B", f"{FOLDER}/verify.pyz", *what)
    judge = f"tfenv verify {name} --lines {LINES}"
    if suite != "workers":
        return [f"{shlex.join(start)} > {LINES}", judge]
    cluster = ",".join(f"127.0.0.1:{_PORT + index * PORTS}" for index in range(WORKERS))
    lines = [shlex.join((*start, "--cluster", cluster, "--worker", str(n))) for n in range(WORKERS)]
    others = [f"{line} > {LINES}.{index} &" for index, line in enumerate(lines) if index]
    return [*others, f"{lines[0]} > {LINES}", judge]
