"""Where two archives of one cell differ: which layers, and which files in them."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from tfenv import oci

_SHOWN = 20


def _entries(archive: Path, layer: oci.LayerBlob) -> dict[str, tuple[object, ...]]:
    """Every member of a layer: what its tar header says, and the hash of its bytes."""
    found: dict[str, tuple[object, ...]] = {}
    with tarfile.open(archive) as outer:
        blob = outer.extractfile(f"blobs/{layer.digest.replace(':', '/')}")
        assert blob is not None
        with tarfile.open(fileobj=decompressed(blob, layer.media_type), mode="r|") as inner:
            for member in inner:
                file = inner.extractfile(member) if member.isreg() else None
                content = _hash(file) if file else ""
                found[member.name] = (
                    ("mode", member.mode),
                    ("owner", (member.uid, member.gid)),
                    ("time", member.mtime),
                    ("type", member.type),
                    ("link", member.linkname),
                    ("content", content),
                    ("device", (member.devmajor, member.devminor)),
                    ("attributes", {k: v for k, v in member.pax_headers.items() if "xattr" in k}),
                )
    return found


def _hash(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def decompressed(blob: IO[bytes], media_type: str) -> IO[bytes]:
    """A layer's tar from its blob."""
    if media_type.endswith("zstd"):
        import zstandard

        return cast(IO[bytes], zstandard.ZstdDecompressor().stream_reader(blob, read_across_frames=True))
    return cast(IO[bytes], gzip.GzipFile(fileobj=blob)) if media_type.endswith("gzip") else blob


def differences(first: Path, second: Path) -> Iterator[str]:
    """One line for each file that differs: layer, path, and what of it."""
    one, two = oci.describe(first), oci.describe(second)
    if one.config_digest != two.config_digest and one.diff_ids == two.diff_ids:
        yield "the configuration differs, the layers do not"
    if len(one.layers) != len(two.layers):
        yield f"{len(one.layers)} layers and {len(two.layers)} layers"
    for number, (a, b) in enumerate(zip(one.layers, two.layers, strict=False), 1):
        if a.digest == b.digest:
            continue
        before, after = _entries(first, a), _entries(second, b)
        if before == after:
            yield f"layer {number}: the same files, stored or compressed differently"
        for name in sorted(before.keys() | after.keys()):
            if name not in before or name not in after:
                yield f"layer {number}: {name}: only in the {'second' if name in after else 'first'}"
            elif before[name] != after[name]:
                pairs = zip(before[name], after[name], strict=True)
                what = [cast(tuple[str, object], x)[0] for x, y in pairs if x != y]
                yield f"layer {number}: {name}: {', '.join(what)}"


def explain(first: Path, second: Path) -> str:
    """``differences`` as text, cut after the first few."""
    lines = list(differences(first, second)) or ["nothing that is visible in the archives"]
    more = [f"... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join(f"  {line}" for line in lines[:_SHOWN] + more)
