"""A team's environment on a small cell, with resolvers that know a few packages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import matrices
from packaging.requirements import Requirement
from tfenv.errors import UsageError
from tfenv.model import DebianPackage, Environment, Lock, Wheel
from tfenv.team import flow
from tfenv.team.resolvers import Resolvers
from tfenv.workspace import Workspace

OWN = """\
environments:
  vision:
    from: 2.15-cu12
    requirements: [pandas, six]
    apt: [libgl1]
    exclude_newer: 2024-06-01T00:00:00Z
"""
TEXT = matrices.TEXT + OWN

#: version -> what it needs, by package; the small row has pip 24.0 and tensorflow 2.15.1.
INDEX: dict[str, dict[str, tuple[str, ...]]] = {
    "pandas": {"2.1.0": ("pytz",), "2.2.0": ("pytz>=2",), "3.0.0": ("pip>=25",)},
    "six": {"1.16.0": (), "1.17.0": ()},
    "pytz": {"1.0": (), "2.0": ()},
    "nvidia-cublas-cu11": {"11.0": ()},
    "foreign": {"1.0": ("nvidia-cublas-cu11",)},
}


def wheel(name: str, version: str) -> Wheel:
    """A wheel of that name."""
    return Wheel(
        name=name,
        version=version,
        filename=f"{name.replace('-', '_')}-{version}-py3-none-any.whl",
        size=3,
        sha256=hashlib.sha256(f"{name} {version}".encode()).hexdigest(),
        layer="cuda" if name.startswith("nvidia-") else "python",
    )


def deb(name: str, version: str = "1.0") -> DebianPackage:
    """A Debian package of that name."""
    return DebianPackage(
        name=name,
        version=version,
        architecture="amd64",
        archive="debian",
        path=f"pool/main/{name[0]}/{name}/{name}_{version}_amd64.deb",
        size=3,
        sha256=hashlib.sha256(name.encode()).hexdigest(),
        essential=False,
    )


class Index:
    """A resolver that tries all versions, newest first; it counts how often it is asked."""

    def __init__(self, index: dict[str, dict[str, tuple[str, ...]]] | None = None) -> None:
        self.index = index or INDEX
        self.asked: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def wheels(
        self, cell: Environment, row: Lock, asked: Sequence[str], constraints: Sequence[str], newest: str
    ) -> tuple[Wheel, ...]:
        self.asked.append((tuple(asked), tuple(constraints)))
        there = {one.name: one.version for one in row.wheels}
        limits = [Requirement(text) for text in constraints]

        def solve(todo: list[Requirement], found: dict[str, str]) -> dict[str, str] | None:
            if not todo:
                return found
            first, rest = todo[0], todo[1:]
            name = first.name
            if name in found or name in there:
                has = found.get(name) or there[name]
                return solve(rest, found) if first.specifier.contains(has) else None
            for version in sorted(self.index.get(name, {}), reverse=True):
                fits = first.specifier.contains(version) and all(
                    limit.specifier.contains(version) for limit in limits if limit.name == name
                )
                needs = [Requirement(text) for text in self.index[name][version]]
                if fits and (done := solve([*rest, *needs], {**found, name: version})):
                    return done
            return None

        done = solve([Requirement(text) for text in asked], {})
        if done is None:
            raise UsageError(
                f"these requirements cannot be met:\nBecause {' and '.join(asked)} need pip>=25, pip==24.0",
                remedy="change them",
            )
        return tuple(wheel(name, version) for name, version in sorted(done.items()))


def resolvers(index: Index | None = None, **changes: Any) -> Resolvers:
    """Resolvers without a network."""
    told: dict[str, Any] = {
        "wheels": (index or Index()).wheels,
        "debian": lambda suite, installed, wanted: (
            tuple(deb(name) for name in wanted),
            "2025-12-01T00:00:00Z",
        ),
        "uv": lambda: "0.9.9",
        "now": lambda: "2026-01-01T00:00:00Z",
    }
    return Resolvers(**{**told, **changes})


def environment(workspace: Workspace) -> Environment:
    """The first environment of a workspace."""
    return workspace.matrix.environments[0]


def lock(workspace: Workspace, index: Index | None = None, **more: Any) -> Environment:
    """Lock and render the first environment of a workspace."""
    from tfenv.files import write_all

    cell = environment(workspace)
    _, made = flow.relock(workspace, cell, resolvers=resolvers(index), **more)
    flow.write_lock(workspace, cell, made)
    write_all(workspace.folder(cell), workspace.rendered(cell))
    return cell
