"""A rebuild held against its snapshot on four levels: file tree, layers, configuration, manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tfenv.errors import EXIT_FAILED, EXIT_OK

from .causes import CAUSES, Change, Layers, judge
from .documents import of_configurations, of_manifests
from .sides import Difference, Image
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
        found = () if manifest else tuple(of_manifests(before, after))
        return Comparison(
            outcome="identical" if manifest else "same content", levels=levels, differences=found
        )
    one, two = (before.tree(), after.tree()) if not layers else (None, None)
    same = one is None or two is None or one.digest == two.digest
    found = (
        *(_files(one, two, before, after) if one and two else ()),
        *(of_configurations(before, after) if not config else ()),
        *of_manifests(before, after),
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
