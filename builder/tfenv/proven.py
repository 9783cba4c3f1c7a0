"""What the committed reports prove of cells: that those of the recorded digests passed, and on which GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfenv import gpus
from tfenv.errors import IntegrityError

if TYPE_CHECKING:
    from tfenv.model import Cell, Lock
    from tfenv.page.evidence import Standing
    from tfenv.workspace import Workspace

#: Tells where a cell's recorded image was verified on GPUs of these compute capabilities; empty if nowhere.
VerifiedOn = Callable[["Cell", frozenset[str]], str]


@dataclass(frozen=True)
class Proven:
    """What holds of a cell on GPUs.

    Args:
        on: the GPUs of each report that passed, newest first, e.g. ``2 x NVIDIA H200``.
        failed_on: the same of those on which something failed.
        damaged: why the reports could not be read.
    """

    on: tuple[str, ...] = ()
    failed_on: tuple[str, ...] = ()
    damaged: str = ""

    @property
    def in_words(self) -> str:
        """E.g. ``verified (NVIDIA H200)``; empty where nothing was tried on a GPU."""
        if self.failed_on:
            return f"failed a check ({'; '.join(self.failed_on)})"
        return f"verified ({'; '.join(self.on)})" if self.on else ""


def proven(workspace: Workspace, cell: Cell, lock: Lock | None) -> Proven:
    """What the reports of a cell's recorded digest prove, where that is the digest of this lock."""
    try:
        found = _standing(workspace, cell, lock)
    except IntegrityError as error:
        return Proven(damaged=error.message)
    decided = [proof for proof in found.proofs if proof.decides] if found else []
    on, failed = (
        tuple(dict.fromkeys(proof.gpus for proof in decided if proof.verdict == verdict))
        for verdict in ("pass", "fail")
    )
    return Proven(on, failed)


def verified_on(workspace: Workspace) -> VerifiedOn:
    """Reads the reports of a workspace, when they are asked for."""

    def where(cell: Cell, capabilities: frozenset[str]) -> str:
        try:
            found = _standing(workspace, cell, workspace.find_lock(cell))
        except IntegrityError:  # a damaged report proves nothing
            return ""
        for proof in found.proofs if found and found.kind == "verified" else ():
            known = {gpu.capability for name in proof.names if (gpu := gpus.find(name))}
            if proof.decides and capabilities and capabilities <= known:
                return proof.where
        return ""

    return where


def _standing(workspace: Workspace, cell: Cell, lock: Lock | None) -> Standing | None:
    from tfenv.page.evidence import of_lock

    folder = workspace.folder(cell)
    # Most cells have none: their locks need not be hashed.
    return of_lock(folder, lock) if (folder / "reports").is_dir() else None
