"""Find the image in an OCI layout, wherever its parts lie: see ``places`` and ``stream``.

Archives of ``docker save`` from engines before 25, which have no index.json, are read too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from tfenv.errors import IntegrityError, UsageError
from tfenv.progress import clean

from .model import Layer

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_BLOB = re.compile(r"(?:\./)?blobs/sha256/([0-9a-f]{64})")
_MOST_LAYERS = 1024
_REFERENCE = "org.opencontainers.image.ref.name"
_PLATFORM = {"os": "linux", "architecture": "amd64"}
#: Gives a layer by key, from what was read before, or reads it.
Recall = Callable[[str, Callable[[], Layer]], Layer]


@dataclass(frozen=True)
class Stored:
    """A layer as the manifest names it: ``member`` is a name in the layout. ``size``: bytes as stored."""

    member: str
    sha256: str
    size: int | None


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image and its layers, read.

    Args:
        digest: of the manifest; empty in archives that have none.
        config: the image's configuration as it is stored.
    """

    digest: str
    config: Mapping[str, Any]
    stored: tuple[Stored, ...]
    layers: tuple[Layer, ...]


class Place(Protocol):
    """Where the parts of an image lie, by name."""

    def document(self, name: str) -> bytes | None:
        """A small file's bytes, None where there is none."""
        ...

    def layer(self, stored: Stored, name: str) -> Layer:
        """A layer, read.

        Args:
            name: what to call it in messages.

        Raises:
            IntegrityError: it is missing or damaged.
        """
        ...


def read_image(place: Place, where: str, reference: str = "", recall: Recall | None = None) -> Image:
    """The image in a layout.

    Args:
        reference: name or digest of the image, where there are several; where: what to call the layout.

    Raises:
        IntegrityError: something is missing or damaged. UsageError: several images, and none is named.
    """
    recall = recall or (lambda _, make: make())
    digest, config, stored = _resolve(place, where, reference)
    if len(stored) > _MOST_LAYERS:
        raise wrong(where, f"it has {len(stored)} layers")
    by_member = {of.member: of for of in stored}

    def read(of: Stored) -> Layer:
        name = f"layer {of.sha256[:12] or of.member} of {where}"
        return recall(of.sha256, lambda: place.layer(of, name)) if of.sha256 else place.layer(of, name)

    with ThreadPoolExecutor(2) as pool:  # hashing and decompressing leave Python's lock
        order = sorted(by_member.values(), key=lambda of: of.size or 0, reverse=True)
        found = dict(zip((of.member for of in order), pool.map(read, order), strict=True))
    return Image(digest=digest, config=config, stored=stored, layers=tuple(found[of.member] for of in stored))


def _resolve(place: Place, where: str, reference: str) -> tuple[str, Mapping[str, Any], tuple[Stored, ...]]:
    if place.document("index.json") is None:
        return _resolve_old(place, where, reference)
    index = _object(place, "index.json", where)
    descriptor = _chosen(place, index, where, reference)
    digest = str(descriptor.get("digest"))
    manifest = _object(place, _member(digest, where), where)
    config = _object(place, _member(_dict(manifest.get("config"), where).get("digest"), where), where)
    stored = []
    for layer in _list(manifest.get("layers"), where):
        member = _member(_dict(layer, where).get("digest"), where)
        size = layer.get("size")
        stored.append(Stored(member, member.rsplit("/", 1)[-1], size if type(size) is int else None))
    return digest, config, tuple(stored)


def _chosen(place: Place, index: Mapping[str, Any], where: str, reference: str, deep: int = 0) -> Any:
    """The one descriptor that is meant; an index in the index is gone into."""
    if deep > 4:
        raise wrong(where, "its indexes lie in each other without end")
    found = [_dict(of, where) for of in _list(index.get("manifests"), where)]
    found = [
        of for of in found if _dict(of.get("platform") or {}, where).get("os") != "unknown"
    ]  # attestation
    if reference:
        named = [of for of in found if reference in (of.get("digest"), _name(of))]
        if not named:
            names = ", ".join(clean(str(_name(of) or of.get("digest"))) for of in found[:5])
            raise UsageError(f"{where} has no image {reference}", remedy=f"it has: {names or 'none'}")
        found = named
    distinct = {str(of.get("digest")): of for of in found}
    if len(distinct) > 1:
        fitting = {key: of for key, of in distinct.items() if _fits(of)}
        distinct = fitting if len(fitting) == 1 else distinct
    if not distinct:
        raise wrong(where, "it holds no image")
    if len(distinct) > 1:
        names = ", ".join(clean(str(_name(of) or key)) for key, of in list(distinct.items())[:5])
        raise UsageError(f"{where} holds several images: {names}", remedy=f"name one: {where}@NAME")
    (descriptor,) = distinct.values()
    if "index" in str(descriptor.get("mediaType")) or "manifest.list" in str(descriptor.get("mediaType")):
        inner = _object(place, _member(descriptor.get("digest"), where), where)
        return _chosen(place, inner, where, "", deep + 1)
    return descriptor


def _name(descriptor: Mapping[str, Any]) -> Any:
    return (descriptor.get("annotations") or {}).get(_REFERENCE)


def _fits(descriptor: Mapping[str, Any]) -> bool:
    platform = descriptor.get("platform") or {}
    return all(platform.get(key) == value for key, value in _PLATFORM.items())


def _resolve_old(
    place: Place, where: str, reference: str
) -> tuple[str, Mapping[str, Any], tuple[Stored, ...]]:
    data = place.document("manifest.json")
    if data is None:
        raise wrong(where, "it is no OCI layout and no archive of an image")
    images = [_dict(of, where) for of in _list(_parsed(data, "manifest.json", where), where)]
    named = [of for of in images if not reference or reference in (of.get("RepoTags") or ())]
    if len(named) != 1:
        tags = ", ".join(clean(str(tag)) for of in images[:5] for tag in of.get("RepoTags") or ("?",))
        raise UsageError(f"{where} holds {len(images)} images: {tags}", remedy=f"name one: {where}@NAME")
    config = _object(place, str(named[0].get("Config")), where)
    members = [str(name) for name in _list(named[0].get("Layers"), where)]
    return "", config, tuple(Stored(name, sha256_of(name), None) for name in members)


def sha256_of(member: str) -> str:
    """The hash that a blob's name says, in hex; empty for other names."""
    found = _BLOB.fullmatch(member)
    return found[1] if found else ""


def _member(digest: object, where: str) -> str:
    found = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if found is None:
        raise wrong(where, f"{clean(repr(digest))[:80]} is no sha256 digest")
    return f"blobs/sha256/{found[1]}"


def _object(place: Place, name: str, where: str) -> dict[str, Any]:
    data = place.document(name)
    if data is None:
        raise wrong(where, f"{clean(name)[:120]} is missing")
    if (wanted := sha256_of(name)) and hashlib.sha256(data).hexdigest() != wanted:
        raise wrong(where, f"{name} does not have its own hash")
    return _dict(_parsed(data, name, where), where)


def _parsed(data: bytes, name: str, where: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise wrong(where, f"{clean(name)[:120]} is not JSON") from None


def _dict(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(where, "a part of it is no JSON object")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise wrong(where, "a part of it is no JSON list")
    return value


def wrong(where: str, why: str) -> IntegrityError:
    """The error of a layout that cannot be used; ``where``: what to call it."""
    return IntegrityError(
        f"{where} is not a usable image: {why}", remedy="save the image again, or name another"
    )
