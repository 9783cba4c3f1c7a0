"""Where two images' documents differ, value by value, and what explains it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .sides import Difference, Image

_TIMES = ("created",)
_BUILDERS = ("history", "moby.buildkit", "container_config", "docker_version", "annotations", "variant")


def of_configurations(before: Image, after: Image) -> Iterator[Difference]:
    """What differs between two configurations, but for what follows from the layers."""
    layers = before.diff_ids == after.diff_ids
    ignored = () if layers else ("rootfs.diff_ids",)  # follows from the layers, which have been told
    found = list(_documents("configuration", before.config(), after.config(), ignored, before, after))
    yield from found
    if not found and layers:
        yield _written_otherwise("configuration", before, after)


def of_manifests(before: Image, after: Image) -> Iterator[Difference]:
    """What differs between two manifests: how the same layers are stored, and other values."""
    same = before.diff_ids == after.diff_ids
    stored = [list(image.manifest().get("layers") or ()) for image in (before, after)]
    found = []
    if same and stored[0] != stored[1]:
        for number, (a, b) in enumerate(zip(*stored, strict=False), 1):
            if a != b:
                kinds = [str(x.get("mediaType", "")).rpartition(".")[2] for x in (a, b)]
                detail = f"{kinds[0]}, {a.get('size')} bytes -> {kinds[1]}, {b.get('size')} bytes"
                found.append(
                    Difference(
                        where="manifest",
                        path=f"layer {number}",
                        what=("compression",),
                        causes=("compressor",),
                        detail=detail,
                    )
                )
    ignored = ("layers", "config")
    found += _documents("manifest", before.manifest(), after.manifest(), ignored, before, after)
    yield from found
    same_config = before.config_digest == after.config_digest
    if not found and same and same_config and before.manifest_digest != after.manifest_digest:
        yield _written_otherwise("manifest", before, after)


def _written_otherwise(where: str, before: Image, after: Image) -> Difference:
    other = before.builder != after.builder
    return Difference(
        where=where,
        path="",
        what=("form",),
        causes=("builder",) if other else (),
        left=() if other else ("form",),
        detail="the same values, written in another form",
    )


def _documents(
    where: str,
    one: Mapping[str, Any],
    two: Mapping[str, Any],
    ignored: Iterable[str],
    before: Image,
    after: Image,
) -> Iterator[Difference]:
    a, b = dict(_flat(one)), dict(_flat(two))
    for path in sorted(a.keys() | b.keys()):
        if a.get(path) == b.get(path) or any(_below(path, name) for name in ignored):
            continue
        cause = _document_cause(path, before.builder != after.builder)
        yield Difference(
            where=where,
            path=path,
            what=("value",),
            causes=(cause,) if cause else (),
            left=() if cause else ("value",),
            detail=f"{_short(a.get(path))} -> {_short(b.get(path))}",
        )


def _document_cause(path: str, other_builder: bool) -> str:
    if path.rpartition(".")[2] in _TIMES:
        return "time stamp"
    built = any(_below(path, name) for name in _BUILDERS)
    return "builder" if built and other_builder else ""


def _below(path: str, name: str) -> bool:
    return path == name or path.startswith((f"{name}.", f"{name}["))


def _flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{at}[{number}]")
    else:
        yield at, value


def _short(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
