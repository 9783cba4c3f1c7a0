"""A project's page, ready to be asked: which version is the newest that a cell could have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from tfenv.simple_index import ProjectFile
from tfenv.wheel_tags import supported_tags

_WHEEL = re.compile(r"[^-]+-([^-]+)-(?:\d[^-]*-)?[^-]+-[^-]+-[^-]+\.whl")


@dataclass(frozen=True)
class Project:
    """All files of one project on the user's indexes."""

    name: str
    files: tuple[ProjectFile, ...]

    @cached_property
    def by_filename(self) -> Mapping[str, tuple[ProjectFile, ...]]:
        """One file name may stand for different files on different indexes."""
        found: dict[str, tuple[ProjectFile, ...]] = {}
        for file in self.files:
            found[file.filename] = (*found.get(file.filename, ()), file)
        return found

    @cached_property
    def wheels(self) -> tuple[tuple[Version, tuple[ProjectFile, ...]], ...]:
        """The wheels that were not yanked, by version, newest first."""
        found: dict[Version, list[ProjectFile]] = {}
        for file in self.files:
            match = _WHEEL.fullmatch(file.filename)
            version = _version(match[1]) if match and file.yanked is None else None
            if version is not None:
                found.setdefault(version, []).append(file)
        return tuple((version, tuple(found[version])) for version in sorted(found, reverse=True))

    def newest(
        self, python: str, platform: str, wanted: Callable[[Version], bool] = lambda _version: True
    ) -> Version | None:
        """The newest wanted version with a wheel for a Python (``3.11``) on a platform; None without one.

        Args:
            platform: ``x86_64-manylinux_2_36``.
        """
        tags = _tags(python, platform)
        for version, files in self.wheels:
            if wanted(version) and any(_serves(file, python, tags) for file in files):
                return version
        return None


def final_only(version: Version) -> bool:
    """No candidate and no development version."""
    return not version.is_prerelease


_tags = cache(supported_tags)


def _serves(file: ProjectFile, python: str, tags: Iterable[Tag]) -> bool:
    try:
        fits = not file.requires_python or SpecifierSet(file.requires_python).contains(f"{python}.99")
        return fits and not parse_wheel_filename(file.filename)[3].isdisjoint(tags)
    except (InvalidSpecifier, InvalidWheelFilename, InvalidVersion):
        return False  # no installer could take it either


@cache
def _version(text: str) -> Version | None:
    try:
        return Version(text.replace("_", "-"))
    except InvalidVersion:
        return None
