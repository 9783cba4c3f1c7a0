"""The document of a snapshot: what was built, by what, and what it has to give again. See docs/bundle.md.

Every version that was ever written stays readable: ``READERS`` holds one function for each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfenv.errors import EXIT_UNVERIFIED, IntegrityError, TfenvError
from tfenv.plain import from_plain, to_plain

FORMAT = 1
#: Also the media type of the document.
ARTIFACT = "application/vnd.tfenv.snapshot.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
TITLE = "org.opencontainers.image.title"
REF = "org.opencontainers.image.ref.name"
CREATED = "org.opencontainers.image.created"
CELL = "dev.tfenv.cell"
LOCK = "dev.tfenv.lock"
IMAGE = "dev.tfenv.image"

# What `--output` may be told by a bundle: nothing that names a file.
_EXPORT = re.compile(
    r"(?:compression=(?:zstd|gzip|estargz|uncompressed)|compression-level=[0-9]{1,2}"
    r"|(?:force-compression|oci-mediatypes|rewrite-timestamp)=(?:true|false))"
)
_SHAPES = {
    "cell": re.compile(r"[a-z0-9][a-z0-9._-]{0,120}"),
    "platform": re.compile(r"[a-z0-9]+/[a-z0-9]+"),
    "export": _EXPORT,
    "manifest": re.compile(r"sha256:[0-9a-f]{64}"),
    "config": re.compile(r"sha256:[0-9a-f]{64}"),
    "tree": re.compile(r"sha256:[0-9a-f]{64}"),
    "diff_ids": re.compile(r"sha256:[0-9a-f]{64}"),
    "lock": re.compile(r"[0-9a-f]{64}"),
    "inputs": re.compile(r"[0-9a-f]{64}"),
    "digest": re.compile(r"sha256:[0-9a-f]{64}"),
    "name": re.compile(r"[a-z0-9][a-z0-9._/:@-]*"),
    "folder": re.compile(r"base/[0-9]{1,2}"),
}


class NotComparable(TfenvError):  # noqa: N818  (the name of the situation, not of a fault)
    """There is nothing that a rebuild could be held against."""

    exit_code = EXIT_UNVERIFIED


@dataclass(frozen=True, kw_only=True)
class Builder:
    """What built: versions as the programs tell them; empty where they do not.

    Args:
        name: as in images/CELL/digest.json, e.g. ``Docker Engine 26.1.5``.
        driver: of the buildx builder; empty or ``docker`` for the engine's own.
    """

    name: str
    engine: str = ""
    client: str = ""
    buildx: str = ""
    buildkit: str = ""
    driver: str = ""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The digests that a rebuild has to give, from the coarsest level to the finest.

    Args:
        tree: of the file tree without times; diff_ids: of the uncompressed layers.
        layer_bytes: size of each layer as stored.
    """

    tree: str
    diff_ids: tuple[str, ...]
    config: str
    manifest: str
    layer_bytes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Context:
    """A base image in the bundle: what the Dockerfile calls it, its folder there, and its digest."""

    name: str
    folder: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One image and all that it takes to make it again.

    Args:
        lock, inputs: sha256 of the lock, and of all that was built from.
        epoch: Unix seconds; SOURCE_DATE_EPOCH of the build.
        export: what BuildKit's exporter is told: decides the bytes of the archive.
        contexts: base images that lie in the bundle.
        stand_in: the base image in whose place another was taken; empty for none.
        template, tfenv: the recipe's hash, and the version of tfenv that wrote the snapshot.
    """

    cell: str
    platform: str
    lock: str
    inputs: str
    locked: bool
    epoch: int
    export: tuple[str, ...]
    contexts: tuple[Context, ...]
    stand_in: str
    template: str
    tfenv: str
    builder: Builder
    expected: Expected
    format: int = FORMAT


def dump(snapshot: Snapshot) -> bytes:
    """The canonical bytes: the same snapshot is the same document."""
    return (json.dumps(to_plain(snapshot), indent=1, sort_keys=True) + "\n").encode()


def load(data: bytes, *, where: str) -> Snapshot:
    """A snapshot of any version.

    Raises:
        NotComparable: a newer tfenv wrote it. IntegrityError: it is damaged.
    """
    try:
        found: Any = json.loads(data)
        version = found.get("format") if isinstance(found, dict) else None
    except (ValueError, RecursionError) as error:
        raise _damaged(where, str(error)) from None
    read = READERS.get(version) if type(version) is int else None
    if read is None:
        if type(version) is int and version > FORMAT:
            raise NotComparable(
                f"{where} has format {version}, this tfenv reads up to {FORMAT}",
                remedy="use the tfenv that wrote it, or a newer one",
            )
        raise _damaged(where, f"its format is {version!r}")
    try:
        return read(found)
    except ValueError as error:
        raise _damaged(where, str(error)) from None


def _shape(where: str, value: Any) -> None:
    name = re.sub(r"\[\d+\]", "", where).rsplit(".", 1)[-1]
    shape = _SHAPES.get(name) if not where.startswith("builder.") else None
    if isinstance(value, str) and shape and not shape.fullmatch(value):
        raise ValueError(f"{where}: {value!r} is not allowed there")
    if type(value) is int and value < 0:
        raise ValueError(f"{where}: {value} is negative")


def _version_1(data: Mapping[str, Any]) -> Snapshot:
    snapshot = from_plain(Snapshot, data, check=_shape)
    if len(snapshot.expected.diff_ids) != len(snapshot.expected.layer_bytes):
        raise ValueError("expected: not as many layers as sizes")
    return snapshot


#: One reader for every version ever written; a fixture of each is in the tests.
READERS: Mapping[int, Callable[[Mapping[str, Any]], Snapshot]] = {1: _version_1}


def _damaged(where: str, why: str) -> IntegrityError:
    return IntegrityError(
        f"{where} is no snapshot of tfenv: {why}",
        remedy="restore it from another copy of the bundle",
    )
