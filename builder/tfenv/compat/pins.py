"""Requirements as text -> names and exact versions."""

from __future__ import annotations

import contextlib

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tfenv.versions import order


def requirements(texts: tuple[str, ...]) -> tuple[Requirement, ...]:
    """The requirements that can be read; options, addresses and the like are left out."""
    found = []
    for text in texts:
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            continue
    return tuple(found)


def pins(texts: tuple[str, ...]) -> dict[str, str]:
    """The packages that are pinned to one version, by normalised name."""
    found: dict[str, str] = {}
    for requirement in requirements(texts):
        only = [spec.version for spec in requirement.specifier if spec.operator in ("==", "===")]
        if only and not only[0].endswith("*"):
            with contextlib.suppress(ValueError):  # also of numbers of thousands of digits
                found[canonicalize_name(requirement.name)] = str(order(only[0]))
    return found


def exact(version: str) -> str:
    """What pip takes ``==2.15`` for: ``2.15.0``, where tfenv's own 2.15 is the last patch of it."""
    return version + ".0" * (2 - version.count(".")) if version.replace(".", "").isdigit() else version


def names(texts: tuple[str, ...]) -> frozenset[str]:
    """The normalised names of the packages that are asked for."""
    return frozenset(canonicalize_name(requirement.name) for requirement in requirements(texts))
