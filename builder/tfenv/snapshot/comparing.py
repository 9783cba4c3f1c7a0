"""A rebuild held against its snapshot on four levels: file tree, layers, configuration, manifest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tfenv.errors import EXIT_FAILED, EXIT_OK

from .causes import CAUSES, Change, Layers, judge
from .tree import Entry, Tree, merged

Outcome = Literal["identical", "same content", "explained difference", "different"]
EXIT_EXPLAINED = 5
EXIT_CODES: Mapping[Outcome, int] = {
    "identical": EXIT_OK,
    "same content": EXIT_OK,
    "explained difference": EXIT_EXPLAINED,
    "different": EXIT_FAILED,
}


@dataclass(frozen=True, kw_only=True)
class Image:
    """One side of a comparison.

    Args:
        manifest, config: the documents; tree: the files. They are read only where digests differ.
        builder: what built it, as people say it.
    """

    manifest_digest: str
    config_digest: str
    diff_ids: tuple[str, ...]
    manifest: Callable[[], Mapping[str, Any]]
    config: Callable[[], Mapping[str, Any]]
    tree: Callable[[], Tree]
    builder: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that differs.

    Args:
        where: ``files``, ``layer 2``, ``configuration``, ``manifest``.
        path: of the file, or of the value in the document; empty for all of it.
        what: the aspects, e.g. ``time``; causes: what explains them; left: aspects that nothing does.
    """

    where: str
    path: str
    what: tuple[str, ...]
    causes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    detail: str = ""

    @property
    def explained(self) -> bool:
        """Whether everything about it has a cause."""
        return not self.left


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What came out. ``levels``: whether file tree, layers, configuration and manifest are the same."""

    outcome: Outcome
    levels: Mapping[str, bool]
    differences: tuple[Difference, ...] = field(default=())

    @property
    def exit_code(self) -> int:
        """0 identical or the same content, 5 all explained, 1 different."""
        return EXIT_CODES[self.outcome]

    @property
    def causes(self) -> dict[str, int]:
        """How many differences each cause has a part in."""
        names = [name for one in self.differences for name in one.causes]
        return {name: names.count(name) for name in dict.fromkeys(names)}


#: What explains differences of whole layers and documents, beside ``causes.CAUSES`` for files.
OTHER_CAUSES: Mapping[str, str] = {
    "compressor": "the same layer, compressed by another program, version or level",
    "order": "the same files, in another order in the layer",
    "archive form": "the same files in the same order, with other tar headers",
    "layers": "the same file tree, cut into layers in another way",
    "builder": "another builder writes other histories and documents",
}


def why(cause: str) -> str:
    """What to say of a cause."""
    return {one.name: one.why for one in CAUSES}.get(cause) or OTHER_CAUSES[cause]


def line(one: Difference) -> str:
    """A difference on one line: where, in what, and what explains it."""
    said = ", ".join(one.causes) or "no known cause"
    if one.left and one.causes:
        said += f", and no known cause of {', '.join(one.left)}"
    detail = f" ({one.detail})" if one.detail else ""
    return f"{one.where}: {one.path or 'as a whole'}: {', '.join(one.what)}{detail}: {said}"


def compare(before: Image, after: Image) -> Comparison:
    """Hold a rebuild (``after``) against the snapshot (``before``)."""
    layers, config = before.diff_ids == after.diff_ids, before.config_digest == after.config_digest
    manifest = before.manifest_digest == after.manifest_digest
    if manifest or (layers and config):
        levels = _levels(True, True, True, manifest)
        found = () if manifest else tuple(_manifests(before, after))
        return Comparison(
            outcome="identical" if manifest else "same content", levels=levels, differences=found
        )
    one, two = (before.tree(), after.tree()) if not layers else (None, None)
    same = one is None or two is None or one.digest == two.digest
    found = (
        *(_files(one, two, before, after) if one and two else ()),
        *(_configs(before, after) if not config else ()),
        *_manifests(before, after),
    )
    explained = bool(found) and all(difference.explained for difference in found)
    return Comparison(
        outcome="explained difference" if explained else "different",
        levels=_levels(same, layers, config, manifest),
        differences=found,
    )


def _levels(files: bool, layers: bool, config: bool, manifest: bool) -> dict[str, bool]:
    return {"files": files, "layers": layers, "configuration": config, "manifest": manifest}


def _files(one: Tree, two: Tree, before: Image, after: Image) -> Iterator[Difference]:
    if len(one.layers) != len(two.layers):
        yield _cut(one, two)
        yield from _changes("files", merged(one.layers), merged(two.layers))
        return
    for number, (a, b) in enumerate(zip(one.layers, two.layers, strict=True), 1):
        if before.diff_ids[number - 1] == after.diff_ids[number - 1]:
            continue
        yield from _layer(f"layer {number}", a, b)


def _cut(one: Tree, two: Tree) -> Difference:
    return Difference(
        where="files",
        path="",
        what=("layers",),
        causes=("layers",),
        detail=f"{len(one.layers)} layers and {len(two.layers)}",
    )


def _layer(where: str, a: tuple[Entry, ...], b: tuple[Entry, ...]) -> Iterator[Difference]:
    changes = list(_changes(where, {e.path: e for e in a}, {e.path: e for e in b}))
    yield from changes
    common = {e.path for e in a} & {e.path for e in b}
    if [e.path for e in a if e.path in common] != [e.path for e in b if e.path in common]:
        yield Difference(where=where, path="", what=("order",), causes=("order",))
    elif not changes:
        yield Difference(where=where, path="", what=("archive form",), causes=("archive form",))


def _changes(where: str, a: Mapping[str, Entry], b: Mapping[str, Entry]) -> Iterator[Difference]:
    layers = Layers(a, b)
    for path in sorted(a.keys() | b.keys()):
        change = Change(path, a.get(path), b.get(path), layers)
        if not change.aspects:
            continue
        judged = judge(change)
        yield Difference(
            where=where,
            path=path,
            what=tuple(sorted(change.aspects)),
            causes=judged.causes,
            left=judged.left,
            detail=_detail(change),
        )


def _detail(change: Change) -> str:
    """What to show of a change that is not plain from its aspects."""
    a, b = change.before, change.after
    if a is None or b is None:
        return "new" if a is None else "gone"
    told = []
    for aspect in ("mode", "owner", "kind", "link"):
        if aspect in change.aspects:
            x, y = getattr(a, aspect), getattr(b, aspect)
            told.append(f"{x:o} -> {y:o}" if aspect == "mode" else f"{x or 'none'} -> {y or 'none'}")
    return ", ".join(told)


# documents

_TIMES = ("created",)
_BUILDERS = ("history", "moby.buildkit", "container_config", "docker_version", "annotations", "variant")


def _configs(before: Image, after: Image) -> Iterator[Difference]:
    layers = before.diff_ids == after.diff_ids
    ignored = () if layers else ("rootfs.diff_ids",)  # follows from the layers, which have been told
    found = list(_documents("configuration", before.config(), after.config(), ignored, before, after))
    yield from found
    if not found and layers:
        yield _written_otherwise("configuration", before, after)


def _manifests(before: Image, after: Image) -> Iterator[Difference]:
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
