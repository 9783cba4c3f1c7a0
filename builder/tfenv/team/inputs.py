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
    """The row's image as a build of it: the store's, the engine's, or built now.

    Raises:
        NotReadyError: engine, disk or network; MissingInputs: a locked file of the row's is gone.
    """
    from tfenv import build

    found = build.find(inputs.below, host.store) or _from_engine(inputs, host)
    if found is None:
        host.console.note(
            f"{inputs.cell.name}: {inputs.below.cell.name} was never built here: it comes first"
        )
        found = build.build(inputs.below, host)
    return found


def _from_engine(inputs: TeamInputs, host: Host) -> Built | None:
    """The image of the recorded digest, which an engine may have from a registry, or have kept after a gc."""
    from tfenv import build, digest, oci
    from tfenv.container import connect

    recorded = inputs.team.row.manifest
    with connect(host.env) as containers:
        if not recorded or containers.inspect(recorded) is None:
            return None
        host.console.note(f"{inputs.cell.name}: taking {inputs.below.cell.name} out of the engine")
        with host.store.temp() as path:
            with containers.saved(recorded) as pieces, path.open("wb") as file:
                file.writelines(pieces)
            described = oci.describe(path)
            if described.manifest_digest != recorded:
                return None  # an engine of another store, which does not keep digests
            oci.verify_blobs(path)
            size = path.stat().st_size
            archive = host.store.adopt(path)
    made = digest.Digest(
        inputs=inputs.below.hash,
        lock=inputs.below.lock_hash,
        manifest=recorded,
        config=described.config_digest,
        diff_ids=described.diff_ids,
        layer_bytes=tuple(layer.size for layer in described.layers),
        builder=build.builder_name(build.ready_engine(host.env)),
    )
    told = json.loads(digest.dump(made)) | {"archive": archive.name, "archive_bytes": size}
    host.store.write_record(inputs.below.hash, told)
    return build.find(inputs.below, host.store)
