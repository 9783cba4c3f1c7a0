"""Images made of a few small files: as an OCI layout in a folder, an archive, or what an engine streams."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import small
from tfenv.diff.describe import of_image
from tfenv.diff.layout import read_image
from tfenv.diff.model import Description
from tfenv.diff.places import Folder

STATUS = "var/lib/dpkg/status"
DPKG = b"""Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u4

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0
"""
OS_RELEASE = b'PRETTY_NAME="Debian"\nID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n'


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def layer(files: Mapping[str, bytes], kind: str = "zstd", more: small.Members = ()) -> bytes:
    """A stored layer of plain files."""
    return small.PACK[kind](small.tarred([*(small.file(name, data) for name, data in files.items()), *more]))


def dist_info(name: str, version: str, more: str = "") -> dict[str, bytes]:
    """What an installed wheel leaves."""
    folder = f"usr/lib/python3.11/site-packages/{name.replace('-', '_')}-{version}.dist-info"
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}\nA description.\n"
    return {f"{folder}/METADATA": text.encode()}


def blobs(
    layers: Sequence[bytes], config: Mapping[str, Any] | None = None, name: str = ""
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The blobs of an image by path, and its descriptor for the index."""
    found: dict[str, bytes] = {}

    def put(data: bytes) -> dict[str, Any]:
        found[f"blobs/sha256/{digest(data)[7:]}"] = data
        return {"digest": digest(data), "size": len(data)}

    stored = [put(data) for data in layers]
    ids = [digest(b"diff" + data) for data in layers]
    whole: dict[str, Any] = {"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": ids}}
    whole["config"] = dict(config or {})
    manifest = {"schemaVersion": 2, "config": put(json.dumps(whole).encode()), "layers": stored}
    descriptor = put(json.dumps(manifest).encode())
    if name:
        descriptor["annotations"] = {"org.opencontainers.image.ref.name": name}
    return found, descriptor


def layout(*images: tuple[dict[str, bytes], dict[str, Any]]) -> dict[str, bytes]:
    """The files of an OCI layout."""
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    for found, _ in images:
        files.update(found)
    index = {"schemaVersion": 2, "manifests": [descriptor for _, descriptor in images]}
    return {**files, "index.json": json.dumps(index).encode()}


def image(layers: Sequence[bytes], config: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """The files of a layout of one image."""
    return layout(blobs(layers, config))


def folder(at: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(data)
    return at


def tar(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def chunks(data: bytes, size: int = 700) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def described(
    at: Path, layers: Sequence[bytes], config: Mapping[str, Any] | None = None, name: str = "an image"
) -> Description:
    """An image of these layers, read."""
    return of_image(name, read_image(Folder(folder(at, image(layers, config))), name))
