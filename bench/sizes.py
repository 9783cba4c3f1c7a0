"""The compressed size of an image in an OCI layout, read from its manifest: one way for both sides."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from typing import IO, Any

SMALL = 4 * 2**20  # manifests and configs are smaller, layers are not read


@dataclass(frozen=True)
class Size:
    """Bytes of all layers as they are stored and transferred, and how they are compressed."""

    compressed_bytes: int
    layers: int
    media_types: tuple[str, ...]


def size_of(stream: IO[bytes]) -> Size:
    """The size of the one image in the tar that `docker save` or `type=oci` writes.

    Raises:
        ValueError: there is no OCI layout in it, or a layer that its manifest names is missing.
    """
    index: dict[str, Any] | None = None
    small: dict[str, bytes] = {}
    sizes: dict[str, int] = {}
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is None:
                continue
            if member.name == "index.json":
                index = json.load(file)
            elif member.name.startswith("blobs/sha256/"):
                digest = "sha256:" + member.name.rpartition("/")[2]
                sizes[digest] = member.size
                if member.size <= SMALL:
                    small[digest] = file.read()
    if index is None:
        raise ValueError("no index.json: this is not an OCI layout")
    manifest = _manifest(index, small)
    for layer in manifest["layers"]:
        if sizes.get(layer["digest"]) != layer["size"]:
            raise ValueError(f"layer {layer['digest']} is not there in full")
    return Size(
        compressed_bytes=sum(layer["size"] for layer in manifest["layers"]),
        layers=len(manifest["layers"]),
        media_types=tuple(sorted({layer["mediaType"] for layer in manifest["layers"]})),
    )


def _manifest(index: dict[str, Any], small: dict[str, bytes]) -> dict[str, Any]:
    """Follows indexes to the image; attestations (platform unknown) are no images."""
    images = [
        entry
        for entry in index["manifests"]
        if entry.get("platform", {}).get("os") != "unknown" and entry["digest"] in small
    ]
    if not images:
        raise ValueError("no image in the index")
    found: dict[str, Any] = json.loads(small[images[0]["digest"]])
    return found if "layers" in found else _manifest(found, small)
