"""Requirements as text -> names and exact versions."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

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
        exact = [spec.version for spec in requirement.specifier if spec.operator in ("==", "===")]
        if exact and not exact[0].endswith("*"):
            try:
                found[canonicalize_name(requirement.name)] = str(order(exact[0]))
            except InvalidVersion:
                continue
    return found


def names(texts: tuple[str, ...]) -> frozenset[str]:
    """The normalised names of the packages that are asked for."""
    return frozenset(canonicalize_name(requirement.name) for requirement in requirements(texts))
