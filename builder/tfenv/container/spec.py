"""A container to run, and how one has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Bind:
    """A host folder or file seen inside a container."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A container to run.

    Args:
        entrypoint: replaces the image's own; empty keeps it.
        user: empty keeps the image's. network: ``none`` or a network's name.
        aliases: names that it has in that network.
        shm_size: e.g. ``2g``. tmpfs: mount options by folder.
        gpus: give it all NVIDIA GPUs, or those of ``docker run --gpus``: ``2`` (so many), ``device=0,1``.
    """

    image: str
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""
    network: str = "none"
    aliases: tuple[str, ...] = ()
    read_only: bool = True
    shm_size: str = "2g"
    tmpfs: Mapping[str, str] = field(default_factory=lambda: {"/tmp": "rw,exec,mode=1777"})
    binds: tuple[Bind, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    gpus: bool | str = False


@dataclass(frozen=True)
class Ended:
    """How a container ended."""

    status: int
    out_of_memory: bool = False
