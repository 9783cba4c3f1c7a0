"""Inputs that are nowhere any more: each by its name, with what could take its place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tfenv.errors import EXIT_NOT_READY, TfenvError
from tfenv.model import Lock, Wheel

from .descriptors import Blob


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A file that could not be restored.

    Args:
        why: what was wrong with the bundle's own; instead: what could replace it, best first.
    """

    title: str
    digest: str
    why: str
    instead: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a replacement is looked for with.

    Args:
        lock: of the snapshot, None where this tfenv cannot read it.
        cell: its name; tfenv: the version that wrote the snapshot.
        urls: addresses of a Debian package by file name, from this machine's mirrors; empty when offline.
        offered: the file names that the user's index has of a package; none when offline.
    """

    blob: Blob
    lock: Lock | None
    cell: str
    tfenv: str
    urls: Mapping[str, tuple[str, ...]]
    offered: Callable[[str], tuple[str, ...]] = lambda _package: ()


def _debian(q: Question) -> tuple[str, ...]:
    name = q.blob.title.rpartition("/")[2]
    package = next((p for p in q.lock.debian if p.filename == name), None) if q.lock else None
    told = [f"the distribution's snapshot service: {url}" for url in q.urls.get(name, ())[1:]]
    if package and not told:
        day = (q.lock.debian_locked_at if q.lock else "")[:10]
        told.append(f"the distribution's snapshot service of {day}: {package.archive}, {package.path}")
    short = package.name if package else name.partition("_")[0]
    newer = f"a newer {short} (another digest): tfenv lock {q.cell} --upgrade debian"
    return (*told, newer)


def _wheel(q: Question) -> tuple[str, ...]:
    name = q.blob.title.rpartition("/")[2]
    wheel = next((w for w in q.lock.wheels if w.filename == name), None) if q.lock else None
    short = f"{wheel.name} {wheel.version}" if wheel else name
    there = _there(wheel, q.offered(wheel.name)) if wheel else ""
    return (
        f"the same file, of sha256 {q.blob.digest[7:19]}..., elsewhere: a folder named by PIP_FIND_LINKS, "
        "or another index",
        f"another build or version of {short} (another digest): tfenv lock {q.cell} --upgrade wheels{there}",
    )


def _there(wheel: Wheel, files: Iterable[str]) -> str:
    """What the index has of the package today: other files of that version, and its newest version."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename
    from packaging.version import Version

    wheels: dict[str, Version] = {}
    for file in files:
        with contextlib.suppress(InvalidWheelFilename):
            wheels[file] = parse_wheel_filename(file)[1]
    same = [f for f, v in wheels.items() if str(v) == str(Version(wheel.version)) and f != wheel.filename]
    finals = [v for v in wheels.values() if not v.is_prerelease]
    told = [f"of that version {', '.join(sorted(same)[:3])}"] if same else []
    told += [f"as newest version {max(finals)}"] if finals else []
    return f"; your index has {' and '.join(told)}" if told else ""


def _interpreter(q: Question) -> tuple[str, ...]:
    where = (
        f"{q.lock.interpreter.provider}: {q.lock.interpreter.path}" if q.lock and q.lock.interpreter else ""
    )
    mirror = (
        f"a mirror of {where}, named by UV_PYTHON_INSTALL_MIRROR" if where else "a mirror of its provider"
    )
    return (mirror, f"another Python (another digest): tfenv lock {q.cell} --upgrade python")


def _base(q: Question) -> tuple[str, ...]:
    image = f"{q.lock.base_image}@{q.lock.base_digest}" if q.lock and q.lock.base_image else "the base image"
    return (
        f"{image}, from its registry or a mirror: docker pull, then archive the cell again",
        f"a stand-in (another digest): tfenv up {q.cell} --stand-in",
    )


def _recipe(q: Question) -> tuple[str, ...]:
    return (f"the recipe of tfenv {q.tfenv}: archive the cell again from a checkout of that version",)


#: By the folder that the file is in.
REPLACEMENTS: tuple[tuple[str, Callable[[Question], tuple[str, ...]]], ...] = (
    ("debs/", _debian),
    ("wheels/", _wheel),
    ("interpreter/", _interpreter),
    ("base/", _base),
    ("context/", _recipe),
)


def instead(question: Question) -> tuple[str, ...]:
    """What could take the place of a lost file; the bundle's other copies come first."""
    own = "the same blob in another copy of the bundle"
    for start, replacement in REPLACEMENTS:
        if question.blob.title.startswith(start):
            return (own, *replacement(question))
    return (own,)


class Vanished(TfenvError):  # noqa: N818  (the name of the situation, not of a fault)
    """Inputs that neither bundle nor store nor network has."""

    exit_code = EXIT_NOT_READY

    def __init__(self, cell: str, lost: Iterable[Lost], *, offline: bool) -> None:
        self.lost = tuple(lost)
        lines = [f"{cell} cannot be rebuilt: {len(self.lost)} of its inputs are not to be had"]
        for one in self.lost:
            lines.append(f"  {one.title}: {one.why}")
            lines += [f"    instead: {what}" for what in one.instead]
        remedy = "put back the blobs of another copy of the bundle"
        if offline:
            remedy += ", or type it without --offline: then the store and the network are asked too"
        super().__init__("\n".join(lines), remedy=remedy)
