"""Why each package is in an environment: it was asked for, or another one needs it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tfenv.refusals import project

from . import asking
from .requirements import holds

if TYPE_CHECKING:
    from tfenv.model import DebianPackage, Environment, Lock, Wheel
    from tfenv.store import Store

#: The requirements that a wheel states of itself; none where they are not known.
Requires = Callable[["Wheel"], "tuple[str, ...]"]
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_NAMED = 3  # packages that need another; the data has all
_MOST = 4 << 20  # bytes of a METADATA; they have some kilobytes


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package of an environment.

    Args:
        asked: the requirement as it was asked for; empty where nobody asked. extra: the extra that asks.
        needed_by: of one that nobody asked for, those that need it, as far as that is known.
        of_row: the row brings it.
    """

    name: str
    version: str
    asked: str = ""
    extra: str = ""
    needed_by: tuple[str, ...] = ()
    of_row: bool = False

    @property
    def why(self) -> str:
        """The reason in words."""
        if not self.asked:
            more = f" and {len(self.needed_by) - _NAMED} more" * (len(self.needed_by) > _NAMED)
            named = ", ".join(self.needed_by[:_NAMED])
            return f"for {named}{more}" if named else "for what was asked for"
        told = f"extra {self.extra}" if self.extra else f"asked for: {self.asked}"
        return f"{told}; the row's" if self.of_row else told


def wheels(cell: Environment, own: Iterable[Wheel], row: Lock, requires: Requires) -> tuple[Package, ...]:
    """The packages that were asked for, in that order, and after them those that they need, by name.

    Args:
        own: the wheels that the environment adds.
    """
    added = {wheel.name: wheel for wheel in own}
    brought = {wheel.name: wheel for wheel in row.wheels if wheel.layer != "tool"}
    found: dict[str, Package] = {}
    for text, extra in asking.requirements(cell).items():
        name = str(canonicalize_name(project(text)))
        wheel = added.get(name) or brought.get(name)
        if wheel is not None and name not in found:
            found[name] = Package(
                name=name, version=wheel.version, asked=text, extra=extra, of_row=name not in added
            )
    parents: dict[str, list[str]] = {}
    of_extras: dict[str, list[str]] = {}
    for name, wheel in sorted(added.items()):
        for needed, certain in _needs(requires(wheel), cell):
            (parents if certain else of_extras).setdefault(needed, []).append(name)
    for name, wheel in sorted(added.items()):
        if name not in found:
            needed_by = dict.fromkeys(parents.get(name) or of_extras.get(name) or [])
            found[name] = Package(name=name, version=wheel.version, needed_by=tuple(needed_by))
    return tuple(found.values())


def debian(cell: Environment, own: Iterable[DebianPackage]) -> tuple[Package, ...]:
    """The same of Debian packages; which of them needs which is in no lock."""
    asked = asking.debian(cell)
    made = [
        Package(
            name=one.name,
            version=one.version,
            asked=one.name if one.name in asked else "",
            extra=asked.get(one.name, ""),
        )
        for one in own
    ]
    return tuple(sorted(made, key=lambda package: not package.asked))


def from_store(store: Store) -> Requires:
    """Reads what a wheel requires from the wheel itself, where the store has it; nothing is fetched."""

    def requires(wheel: Wheel) -> tuple[str, ...]:
        from tfenv.audit.headers import metadata

        if not store.has(wheel.sha256):
            return ()
        try:
            with zipfile.ZipFile(store.path(wheel.sha256)) as archive:
                (name,) = (name for name in archive.namelist() if _METADATA.fullmatch(name))
                with archive.open(name) as file:
                    return tuple(metadata(file.read(_MOST).decode("utf-8", "replace"))["requires"])
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
            return ()  # that the file is damaged is found by whoever builds from it

    return requires


def _needs(texts: Iterable[str], cell: Environment) -> Iterator[tuple[str, bool]]:
    """Names of what is required in the cell's image, and whether also where no extra was asked for."""
    for text in texts:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue
        certain = wanted.marker is None or holds(wanted.marker, cell)
        if certain or "extra" in str(wanted.marker):
            yield str(canonicalize_name(wanted.name)), certain
