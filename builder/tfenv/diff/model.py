"""What is known of an image, and how two of them differ: frozen, plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["lock", "image", "snapshot"]
State = Literal["added", "removed", "changed", "unknown before", "unknown after"]


class Entry(NamedTuple):
    """One file of an image.

    Args:
        kind: ``f`` file, ``d`` folder, ``l`` symbolic link, ``o`` device or pipe.
        size: bytes; content: sha256 in hex of a file, target of a link.
    """

    kind: str
    mode: int
    owner: str
    size: int
    content: str


@dataclass(frozen=True)
class Layer:
    """What one layer holds.

    Args:
        entries: by path without a leading slash; whiteouts keep their names.
        texts: the few small files whose text tells what is installed, by path.
        size: bytes of the files in it.
        note: what could not be kept of it; empty if nothing.
    """

    entries: Mapping[str, Entry]
    texts: Mapping[str, str]
    size: int
    note: str = ""


@dataclass(frozen=True)
class Known:
    """Values by name, and whether these are all: of a name that is missing from an incomplete table
    nothing is known. ``why`` says what it takes to know."""

    values: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True
    why: str = ""


def unknown(why: str) -> Known:
    """Nothing is known."""
    return Known({}, False, why)


@dataclass(frozen=True)
class LayerSize:
    """One layer as an image lists it.

    Args:
        id: sha256 of the uncompressed layer. stored: bytes as stored; None where it was not read.
        files: bytes of its files; None where it was not read.
    """

    id: str
    stored: int | None
    files: int | None
    made_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Description:
    """All that is known of one side.

    Args:
        name: as the user typed it; kind: whether it is inputs or an image.
        digest: of the image's manifest, or of the lock; empty where there is none.
        stack: TensorFlow, CUDA, cuDNN and the libraries that go with them.
        settings: user, entry point, command, working folder, volumes, ports.
        libraries: shared libraries by file name; value: hashes of what bears that name.
        entries: None where the files are not known.
        layers: None where they are not known.
        created: time of the image, as it is written there.
        notes: what was cut off or could not be read.
    """

    name: str
    kind: Kind
    digest: str
    stack: Known
    python: Known
    wheels: Known
    debian: Known
    base: Known
    asked: Known
    environment: Known
    settings: Known
    labels: Known
    libraries: Known
    entries: Mapping[str, Entry] | None = None
    layers: tuple[LayerSize, ...] | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """One thing that differs. ``before`` and ``after`` are for people; empty where it is not there."""

    name: str
    state: State
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Section:
    """One part of the answer.

    Args:
        rank: the lower, the more it matters.
        title: for people; key: for programs.
        changes: what differs, what matters first.
        notes: sentences. folded: a long list that only Markdown and JSON show whole.
    """

    key: str
    title: str
    rank: int
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    unknown: str = ""
    folded: bool = False

    @property
    def differs(self) -> bool:
        """Whether something differs that both sides know."""
        return any(not change.state.startswith("unknown") for change in self.changes)


@dataclass(frozen=True)
class Difference:
    """The answer: all sections in the order of their rank."""

    before: Description
    after: Description
    sections: tuple[Section, ...]
    identical: bool = False

    @property
    def differs(self) -> bool:
        """Whether anything differs that both sides know."""
        return any(section.differs for section in self.sections)
