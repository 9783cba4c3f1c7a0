"""Read an OCI image archive (a tar of an OCI image layout) without unpacking it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from tfenv.errors import IntegrityError
from tfenv.unzstd import unzstd

_INDEX = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_BLOBS = "blobs/sha256/"
_MEMBER = re.compile(_BLOBS + r"[0-9a-f]{64}|index\.json|oci-layout")
_CHUNK = 1 << 20  # bytes
_JSON_MAX = 16 * 1024 * 1024  # bytes; a manifest or config is a few kilobytes


@dataclass(frozen=True)
class LayerBlob:
    """One layer as it is stored. ``size`` is compressed bytes."""

    digest: str
    size: int
    media_type: str


@dataclass(frozen=True, kw_only=True)
class Archive:
    """What an archive holds. ``compressed_size`` is bytes of config and layers together.

    Args:
        digest: by which engine and registry know the image: of the index that holds its manifest (as where
            attestations are beside it), of the manifest itself where there is no index.
    """

    path: Path
    digest: str
    manifest_digest: str
    config_digest: str
    manifest: Mapping[str, Any]
    config: Mapping[str, Any]
    layers: tuple[LayerBlob, ...]
    diff_ids: tuple[str, ...]
    compressed_size: int

    @property
    def labels(self) -> Mapping[str, str]:
        """The image's labels."""
        return (self.config.get("config") or {}).get("Labels") or {}


class _Layout:
    """The members of an open archive by name."""

    def __init__(self, path: Path, tar: tarfile.TarFile) -> None:
        self.path = path
        self._tar = tar
        size = path.stat().st_size
        self.members: dict[str, tarfile.TarInfo] = {}
        for member in tar:
            if member.isfile():
                if member.offset_data + member.size > size:
                    raise self.wrong(f"it is truncated in {member.name}")
                self.members[member.name.removeprefix("./")] = member

    def wrong(self, why: str) -> IntegrityError:
        return IntegrityError(
            f"{self.path} is not a usable OCI archive: {why}",
            remedy="delete it and run `tfenv build` again",
        )

    def open(self, name: str) -> IO[bytes]:
        member = self.members.get(name)
        stream = self._tar.extractfile(member) if member else None
        if stream is None:
            raise self.wrong(f"{name} is missing")
        return stream

    def blob(self, digest: object, size: object = None) -> str:
        """The member that holds ``digest``, checked to be there and of that size."""
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise self.wrong(f"{digest!r} is not a sha256 digest")
        name = _BLOBS + digest.removeprefix("sha256:")
        member = self.members.get(name)
        if member is None:
            raise self.wrong(f"{name} is missing")
        if size is not None and member.size != size:
            raise self.wrong(f"{name} has {member.size} bytes, not {size}")
        return name

    def json(self, name: str, digest: str | None = None) -> dict[str, Any]:
        data = self.open(name).read(_JSON_MAX)
        if digest and f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            raise self.wrong(f"{name} does not have its own hash")
        try:
            value = json.loads(data)
        except ValueError:
            raise self.wrong(f"{name} is not JSON") from None
        if not isinstance(value, dict):
            raise self.wrong(f"{name} is not a JSON object")
        return value


@contextmanager
def _layout(path: Path) -> Iterator[_Layout]:
    try:
        with tarfile.open(path, "r:") as tar:
            layout = _Layout(path, tar)
            if layout.json("oci-layout").get("imageLayoutVersion") != "1.0.0":
                raise layout.wrong("oci-layout names another version")
            yield layout
    except FileNotFoundError:
        raise IntegrityError(f"{path} is missing", remedy="run `tfenv build` again") from None
    except tarfile.TarError as error:
        raise IntegrityError(
            f"{path} is not a usable OCI archive: {error}",
            remedy="delete it and run `tfenv build` again",
        ) from None


def _resolve(
    layout: _Layout, index: Mapping[str, Any], platform: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The descriptor in ``index`` that leads to the one image manifest for ``platform``, and that manifest's.

    Attestations are no images.
    """
    wanted = dict(zip(("os", "architecture"), platform.split("/"), strict=False))
    found = []
    for descriptor in index.get("manifests") or ():
        said = descriptor.get("platform") or wanted
        if descriptor.get("mediaType") in _INDEX:
            name = layout.blob(descriptor.get("digest"), descriptor.get("size"))
            inner = _resolve(layout, layout.json(name, descriptor["digest"]), platform)
            found.append((descriptor, inner[1]))
        elif all(said.get(key) == value for key, value in wanted.items()):
            found.append((descriptor, descriptor))
    if len(found) != 1:
        raise layout.wrong(f"it holds {len(found)} images for {platform}, not one")
    return found[0]


def describe(path: Path, *, platform: str = "linux/amd64") -> Archive:
    """The image in the archive at ``path``.

    Raises:
        IntegrityError: truncated, foreign, or inconsistent. Layers are checked by size only; see
            ``verify_blobs``.
    """
    with _layout(path) as layout:
        outer, descriptor = _resolve(layout, layout.json("index.json"), platform)
        digest = descriptor.get("digest")
        manifest = layout.json(layout.blob(digest, descriptor.get("size")), str(digest))
        stored = manifest.get("config") or {}
        config_digest = stored.get("digest")
        config = layout.json(layout.blob(config_digest, stored.get("size")), str(config_digest))
        layers = []
        for layer in manifest.get("layers") or ():
            layout.blob(layer.get("digest"), layer.get("size"))
            layers.append(LayerBlob(layer["digest"], layer["size"], layer.get("mediaType", "")))
        diff_ids = tuple((config.get("rootfs") or {}).get("diff_ids") or ())
        if len(diff_ids) != len(layers):
            raise layout.wrong(f"{len(layers)} layers but {len(diff_ids)} diff ids")
        return Archive(
            path=path,
            digest=str(outer.get("digest")),
            manifest_digest=str(digest),
            config_digest=str(config_digest),
            manifest=manifest,
            config=config,
            layers=tuple(layers),
            diff_ids=diff_ids,
            compressed_size=stored["size"] + sum(layer.size for layer in layers),
        )


def documents(path: Path, *digests: str) -> tuple[bytes, ...]:
    """The bytes of small blobs of the archive at ``path``, such as its manifest, checked by hash.

    Raises:
        IntegrityError: one is missing or damaged.
    """
    with _layout(path) as layout:
        found = []
        for digest in digests:
            data = layout.open(layout.blob(digest)).read(_JSON_MAX)
            if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
                raise layout.wrong(f"{digest} does not have its own hash")
            found.append(data)
        return tuple(found)


def unpack(path: Path, folder: Path, wanted: Callable[[str], bool] = lambda _: True) -> frozenset[str]:
    """Write the blobs, the index and the version of an OCI layout in a tar into ``folder``, and nothing else.

    Args:
        wanted: tells by their names, such as ``blobs/sha256/...``, which of them.

    Returns:
        The names of those that were there.
    """
    found = set()
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            stream = tar.extractfile(member) if member.isfile() and _MEMBER.fullmatch(name) else None
            if stream is not None and wanted(name):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(stream, file, _CHUNK)
                found.add(name)
    return frozenset(found)


@contextmanager
def opened(path: Path, layer: LayerBlob) -> Iterator[IO[bytes]]:
    """The tar of a layer of the archive at ``path``, uncompressed, to be read from the front.

    Raises:
        IntegrityError: it is missing. NotReadyError: nothing here reads zstd. What reads it raises the
            decompressor's own errors.
    """
    with _layout(path) as layout:
        blob = layout.open(layout.blob(layer.digest))
        if layer.media_type.endswith("zstd"):
            with unzstd(blob) as stream:
                yield stream
        elif layer.media_type.endswith("gzip"):
            import gzip

            with gzip.GzipFile(fileobj=blob) as unzipped:
                yield cast(IO[bytes], unzipped)
        else:
            yield blob


def require_compression(archive: Archive, kind: str) -> None:
    """Are all layers compressed by ``kind`` (``zstd``, ``gzip``)?

    BuildKit keeps layers that it has once compressed, and may export those of another build in its way.

    Raises:
        IntegrityError: names the first layer that is not.
    """
    for layer in archive.layers:
        if not layer.media_type.endswith(f"+{kind}"):
            raise IntegrityError(
                f"layer {layer.digest} of {archive.path} is {layer.media_type or 'of no stated type'}, "
                f"not compressed by {kind}: the builder has it in its cache from another build",
                remedy="run `docker builder prune`, then `tfenv build` again",
            )


def verify_blobs(path: Path) -> None:
    """Read every blob of the archive once and compare its sha256 with its name.

    Raises:
        IntegrityError: names the first blob that differs.
    """
    with _layout(path) as layout, ThreadPoolExecutor(os.cpu_count()) as pool:
        blobs = [member for name, member in layout.members.items() if name.startswith(_BLOBS)]
        blobs.sort(key=lambda member: member.size, reverse=True)
        hashes = pool.map(lambda member: _sha256(path, member), blobs)
        for member, sha256 in zip(blobs, hashes, strict=True):
            if sha256 != member.name.removeprefix("./").removeprefix(_BLOBS):
                raise layout.wrong(f"{member.name} does not have its own hash")


def _sha256(path: Path, member: tarfile.TarInfo) -> str:
    hashed, left = hashlib.sha256(), member.size
    with path.open("rb") as stream:
        stream.seek(member.offset_data)
        while chunk := stream.read(min(left, _CHUNK)):
            hashed.update(chunk)
            left -= len(chunk)
    return hashed.hexdigest()
