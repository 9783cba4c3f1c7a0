"""A team environment's lock: the row's image that it stands on, and what is added, all by hash."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tfenv.model import DebianPackage, Lock, Wheel


@dataclass(frozen=True, kw_only=True)
class RowPin:
    """The image that an environment stands on.

    Args:
        cell: the row's cell; lock: sha256 of its lock.
        inputs: sha256 of all that its image is built from: with the same inputs come the same layers.
        packages: sha256 over what it brings by name and version: only when that changes, the team's own
            packages have to be resolved anew.
        manifest: digest that its builds gave when it was recorded, ``sha256:...``; empty where none is.
    """

    cell: str
    lock: str
    inputs: str
    packages: str
    manifest: str


@dataclass(frozen=True, kw_only=True)
class TeamLock:
    """What ``images/<environment>/lock.json`` holds.

    Args:
        epoch: Unix seconds; creation time of the image, upper bound of its own layers' file times.
        requirements, apt: what the team asked for; exclude_newer: RFC 3339 time used by the resolver.
        template: sha256 of the templates of an environment's own layers.
        uv: version of uv that resolved.
        debian: packages that the row's image lacks, or has in an older version that cannot stay.
        wheels: those that the row's image lacks; layer ``cuda`` for NVIDIA's, ``python`` for all others.
    """

    cell: str
    row: RowPin
    epoch: int
    requirements: tuple[str, ...]
    apt: tuple[str, ...]
    exclude_newer: str
    template: str
    uv: str
    debian: tuple[DebianPackage, ...]
    debian_locked_at: str
    wheels: tuple[Wheel, ...]
    kind: Literal["team"] = "team"
    format: int = field(default=1)


@dataclass(frozen=True, kw_only=True)
class Layer(Lock):
    """What an environment's own layers are made of, in the form in which a build takes it.

    Args:
        python: version, e.g. ``3.11``; the name of an environment does not tell it.
    """

    python: str
