"""All that decides an environment's image: its own layers' inputs, and the row's image below them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tfenv.errors import IntegrityError
from tfenv.inputs import Inputs
from tfenv.model import Environment, Lock

from . import joined
from .model import Layer, TeamLock

if TYPE_CHECKING:
    from tfenv.build import Built, Host


@dataclass(frozen=True, kw_only=True)
class TeamInputs(Inputs):
    """What an environment is built from.

    Its identity holds the hash of the row's inputs, not the digest of the row's image: a compressor of
    another version gives the row's layers other bytes, and the same content.

    Args:
        cell: the environment; lock: all that is in the image.
        team: the environment's own lock; row: that of its cell; below: the row's inputs.
    """

    cell: Environment
    team: TeamLock
    row: Lock
    below: Inputs

    @property
    def own(self) -> Layer:
        """What the environment's own layers are made of."""
        return joined.layer(self.cell, self.row, self.team)

    @cached_property
    def hash(self) -> str:
        """sha256 over the lock, the recipe and the rendered files: the build's name."""
        told = [self.lock_hash, self.lock.template, sorted(self.files.items())]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def on(inputs: TeamInputs, row: Built, layout: str) -> TeamInputs:
    """The same on the row's image, where it lies now.

    Args:
        layout: the image as BuildKit reads it, ``oci-layout://...@sha256:...``.

    Raises:
        IntegrityError: the image is not of what the environment was locked on.
    """
    from tfenv import resources

    if row.inputs.hash != inputs.team.row.inputs:
        raise IntegrityError(
            f"{inputs.cell.name} was locked on another {inputs.team.row.cell}: "
            f"sha256:{inputs.team.row.inputs}, here is sha256:{row.inputs.hash}",
            remedy=f"type: tfenv lock {inputs.cell.name}   (keeps every pin), then: tfenv render",
        )
    contexts = {"row": layout, "team": str(resources.templates_dir() / "team")}
    return replace(inputs, contexts=contexts, base=row.archive)


def row_of(inputs: TeamInputs, host: Host) -> Built:
    """The row's image as a build of it: the store's, or built now.

    Raises:
        NotReadyError: engine, disk or network; MissingInputs: a locked file of the row's is gone.
    """
    from tfenv import build

    found = build.find(inputs.below, host.store)
    if found is None:
        host.console.note(
            f"{inputs.cell.name}: {inputs.below.cell.name} was never built here: it comes first"
        )
        found = build.build(inputs.below, host)
    return found
