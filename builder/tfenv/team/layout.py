"""A built image as a folder that BuildKit can start from: an OCI layout, with layers only if need be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import oci
from tfenv.context import place
from tfenv.errors import IntegrityError

if TYPE_CHECKING:
    from tfenv.store import Store


@contextmanager
def unpacked(archive: Path, store: Store, *, layers: bool) -> Iterator[str]:
    """The image of an archive as a build context, ``oci-layout://FOLDER@sha256:...``, for a while.

    Args:
        layers: unpack them too. An engine that has the image asks only for its manifest and config,
            so that a gigabyte of layers need not be written once more.
    """
    described = oci.describe(archive)
    with place(store, f"row-{described.manifest_digest.removeprefix('sha256:')[:16]}") as folder:
        write(archive, described, folder, layers=layers)
        yield f"oci-layout://{folder}@{described.manifest_digest}"


def write(archive: Path, described: oci.Archive, folder: Path, *, layers: bool) -> None:
    """Write the layout into an empty folder."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    wanted = {described.manifest_digest, described.config_digest}
    if layers:
        wanted |= {layer.digest for layer in described.layers}
    names = {f"blobs/sha256/{digest.removeprefix('sha256:')}" for digest in wanted}
    if lacking := names - oci.unpack(archive, folder, names.__contains__):
        raise IntegrityError(
            f"{archive} lacks {', '.join(sorted(lacking))}", remedy="type the command again: it is built anew"
        )
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', "utf-8")
    stored = blobs / described.manifest_digest.removeprefix("sha256:")
    entry = {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": described.manifest_digest,
        "size": stored.stat().st_size,
        "platform": {"architecture": "amd64", "os": "linux"},
    }
    index = {"schemaVersion": 2, "manifests": [entry]}
    (folder / "index.json").write_text(json.dumps(index), "utf-8")
