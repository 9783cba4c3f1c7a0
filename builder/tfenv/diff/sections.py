"""The parts of the answer: each a pure function of two descriptions, in one table by what matters first."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from dataclasses import dataclass

from .filelist import compare_files
from .model import Change, Description, Difference, Known, LayerSize, Section, State
from .stack import PARTS, TENSORFLOW, agree

Compare = Callable[[Description, Description], tuple[Change, ...]]
#: Packages that break code or TensorFlow itself when they move; they lead their section.
_TELLING = ("numpy", "keras", "protobuf", "ml-dtypes", "h5py", "tf-keras", "tensorflow-probability", "jax")
_STACK_ORDER = (TENSORFLOW, *(part.name for part in PARTS))
#: Labels that move with every build: said, but last.
_DULL = re.compile(r".*\.(?:lock|created|title|description|revision|version|digest)")
Same = Callable[[str, str], bool]


def differences(before: Known, after: Known, same: Same = lambda a, b: a == b) -> tuple[Change, ...]:
    """What differs in two tables, by name. What only one side can tell is unknown on the other."""
    found = []
    for name in sorted(before.values.keys() | after.values.keys()):
        one, other = before.values.get(name), after.values.get(name)
        if one is not None and other is not None:
            if not same(one, other):
                found.append(Change(name, "changed", one, other))
            continue
        state: State
        if one is None:
            state = "added" if before.complete else "unknown before"
        else:
            state = "removed" if after.complete else "unknown after"
        found.append(Change(name, state, one or "", other or ""))
    return tuple(found)


def _ordered(changes: tuple[Change, ...], first: Callable[[str], object]) -> tuple[Change, ...]:
    """What differs before what is unknown, then by what matters."""
    return tuple(sorted(changes, key=lambda c: (c.state.startswith("unknown"), first(c.name))))


def _of_stack(before: Description, after: Description) -> tuple[Change, ...]:
    exact = [c for c in differences(before.stack, after.stack) if c.name == TENSORFLOW]
    coarse = [c for c in differences(before.stack, after.stack, agree) if c.name != TENSORFLOW]
    places = {name: place for place, name in enumerate(_STACK_ORDER)}
    return _ordered((*exact, *coarse), lambda name: (places.get(name, len(places)), name))


def _of_wheels(before: Description, after: Description) -> tuple[Change, ...]:
    places = {name: place for place, name in enumerate(_TELLING)}

    def first(name: str) -> object:
        return (not name.startswith(("tensorflow", "tf-")), places.get(name, len(places)), name)

    return _ordered(differences(before.wheels, after.wheels), first)


def _of_labels(before: Description, after: Description) -> tuple[Change, ...]:
    changes = differences(before.labels, after.labels)
    return _ordered(changes, lambda name: (bool(_DULL.fullmatch(name)), name))


def _of(table: str) -> Compare:
    def compare(before: Description, after: Description) -> tuple[Change, ...]:
        return _ordered(differences(getattr(before, table), getattr(after, table)), str)

    return compare


def _of_files(before: Description, after: Description) -> tuple[Change, ...]:
    if before.entries is None or after.entries is None:
        return ()
    return compare_files(before.entries, after.entries)


def _of_layers(before: Description, after: Description) -> tuple[Change, ...]:
    """Layers by content: one that both have is no difference, wherever it stands."""
    if before.layers is None or after.layers is None:
        return ()
    one, other = ({layer.id for layer in side} for side in (before.layers, after.layers))
    found = [Change(_layer_name(n, of), "removed", _layer_size(of)) for n, of in _only(before.layers, other)]
    return (
        *found,
        *(Change(_layer_name(n, of), "added", "", _layer_size(of)) for n, of in _only(after.layers, one)),
    )


def _only(layers: tuple[LayerSize, ...], shared: Set[str]) -> list[tuple[int, LayerSize]]:
    return [(number, layer) for number, layer in enumerate(layers, 1) if layer.id not in shared]


def _layer_name(number: int, layer: LayerSize) -> str:
    return f"layer {number}" + (f": {layer.made_by}" if layer.made_by else "")


def _layer_size(layer: LayerSize) -> str:
    told = [f"{_size(layer.stored)} stored"] if layer.stored is not None else []
    return ", ".join(told + ([f"{_size(layer.files)} of files"] if layer.files is not None else []))


@dataclass(frozen=True)
class Part:
    """One section: what it is called, how much it matters, how it compares.

    Args:
        tables: the parts of a description that it is about; where one is unknown, the section says so.
        folded: its list is long and mostly of no interest.
    """

    key: str
    title: str
    rank: int
    tables: tuple[str, ...]
    compare: Compare
    folded: bool = False


#: What a person looks for first has the lowest rank; noise has the highest.
PARTS_OF_ANSWER = (
    Part("stack", "TensorFlow and CUDA", 10, ("stack",), _of_stack),
    Part("python", "Python", 20, ("python",), _of("python")),
    Part("wheels", "Python packages", 30, ("wheels",), _of_wheels),
    Part("base", "Base", 40, ("base",), _of("base")),
    Part("settings", "How it starts", 50, ("settings",), _of("settings")),
    Part("environment", "Environment variables", 60, ("environment",), _of("environment")),
    Part("asked", "What was asked for", 65, ("asked",), _of("asked")),
    Part("libraries", "Shared libraries", 70, ("libraries",), _of("libraries"), True),
    Part("debian", "Debian packages", 80, ("debian",), _of("debian")),
    Part("labels", "Labels", 85, ("labels",), _of_labels),
    Part("layers", "Size and layers", 90, ("layers",), _of_layers),
    Part("files", "Files", 100, ("entries",), _of_files, True),
)


def compare(before: Description, after: Description) -> Difference:
    """All sections, by rank. Two images of one digest are not looked into."""
    sections = [_section(part, before, after) for part in sorted(PARTS_OF_ANSWER, key=lambda p: p.rank)]
    same_bits = bool(before.digest) and before.digest == after.digest and before.kind == after.kind
    return Difference(before, after, tuple(sections), same_bits)


def _section(part: Part, before: Description, after: Description) -> Section:
    unknown = [gap for side in (before, after) for table in part.tables if (gap := _gap(side, table))]
    notes = _size_notes(before, after) if part.key == "layers" else ()
    changes = part.compare(before, after)
    if part.key == "libraries":
        changes = tuple(_other_content(change) for change in changes)
    return Section(part.key, part.title, part.rank, changes, notes, _gaps(unknown), part.folded)


def _gap(side: Description, table: str) -> tuple[str, str] | None:
    """Of which side nothing is known, and why; None where something is."""
    value = getattr(side, table)
    if value is None:
        return side.name, "it is a lock: only the built image tells"
    if isinstance(value, Known) and not value.complete and not value.values:
        return side.name, value.why
    return None


def _gaps(found: list[tuple[str, str]]) -> str:
    if len(found) == 2 and found[0][1] == found[1][1]:
        return f"not known of either: {found[0][1]}"
    return "; ".join(f"not known of {name}: {why}" for name, why in found)


def _other_content(change: Change) -> Change:
    """Hashes of libraries are of no use to a person."""
    if change.state == "changed":
        return Change(change.name, "changed", "one content", "another")
    return Change(change.name, change.state)


def _size_notes(before: Description, after: Description) -> tuple[str, ...]:
    if before.layers is None or after.layers is None:
        return ()
    shared = {layer.id for layer in before.layers} & {layer.id for layer in after.layers}
    said = [f"{len(before.layers)} and {len(after.layers)} layers, {len(shared)} in common"]
    for what in ("stored", "files"):
        sums = [[getattr(layer, what) for layer in side.layers or ()] for side in (before, after)]
        if all(None not in of for of in sums):
            one, other = (sum(of) for of in sums)
            words = "as stored" if what == "stored" else "of files"
            said.append(f"{_size(one)} and {_size(other)} {words} ({_signed(other - one)})")
    return tuple(said)


def _size(count: int) -> str:
    from tfenv.console import size

    return size(count)


def _signed(count: int) -> str:
    return f"{'+' if count >= 0 else '-'}{_size(abs(count))}"
