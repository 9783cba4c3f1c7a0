"""The suite in a folder, for a host without tfenv: what to type there, and what to bring back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfenv.files import write_all

from .engine import expecting
from .running import FOLDER
from .suite import Suite, pack
from .workers import PORTS, WORKERS

LINES = "lines"
_PORT = 29400
_DIGEST = "DIGEST"


def write_kit(folder: Path, declared: Mapping[str, Any]) -> None:
    """Write ``verify.pyz`` and ``declared.json``.

    Raises:
        NotReadyError: they cannot be written.
    """
    told = json.dumps(declared, indent=2, sort_keys=True) + "\n"
    write_all(folder, {"verify.pyz": pack(), "declared.json": told})


@dataclass(frozen=True, kw_only=True)
class Typed:
    """What to type.

    Args:
        there: beside the folder ``kit``, on a host where the image is unpacked in ``rootfs``.
        bring: the files that this gives, which are to lie together where tfenv is. here: what judges them.
        remarks: what is to be put into that before.
    """

    there: tuple[str, ...]
    bring: tuple[str, ...]
    here: str
    remarks: tuple[str, ...] = ()

    @property
    def commands(self) -> list[str]:
        """All of them, in order."""
        return [*self.there, self.here]

    @property
    def text(self) -> str:
        """For people, as a shell takes it, too."""
        brought = f"# bring {' and '.join(self.bring)}, and type here:"
        return "\n".join([*self.there, brought, *(f"# {remark}" for remark in self.remarks), self.here])


def kit_commands(
    named: Sequence[str],
    suite: Suite,
    *,
    gpus: str = "auto",
    expect_gpus: int | None = None,
    digest: str | None = None,
) -> Typed:
    """What to type for a kit.

    Args:
        named: the cell, as ``tfenv verify`` takes it, or its option for another image.
        gpus: as of ``--gpus``, what the image gets there. expect_gpus: how many it shall see.
        digest: of the image; empty where nobody here knows it, None where it is recorded.
    """
    run = ("python3", "-m", "tfenv.rootfs_run", "--rootfs", "rootfs", "--bind", f"kit:{FOLDER}")
    given = () if gpus in ("auto", "all") else ("--gpus", gpus)
    what = ("--declared", f"{FOLDER}/declared.json", "--suite", suite, *expecting(expect_gpus))
    start = (*run, *given, "--", "python", "-B", f"{FOLDER}/verify.pyz", *what)
    of = () if digest is None else ("--digest", digest or _DIGEST)
    here = shlex.join(("tfenv", "verify", *named, "--suite", suite, *of, "--lines", LINES))
    remarks = (f'{_DIGEST} is what rootfs.json there says as "manifest"',) if digest == "" else ()
    if suite != "workers":
        return Typed(there=(f"{shlex.join(start)} > {LINES}",), bring=(LINES,), here=here, remarks=remarks)
    cluster = ",".join(f"127.0.0.1:{_PORT + index * PORTS}" for index in range(WORKERS))
    lines = [shlex.join((*start, "--cluster", cluster, "--worker", str(n))) for n in range(WORKERS)]
    others = [f"{line} > {LINES}.{index} &" for index, line in enumerate(lines) if index]
    bring = (LINES, *(f"{LINES}.{index}" for index in range(1, WORKERS)))
    return Typed(there=(*others, f"{lines[0]} > {LINES}"), bring=bring, here=here, remarks=remarks)
