"""What a lock pins by hash: packages, wheels, and all that a cell is built from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .parts import CudaFrom, Interpreter, Layer, Link, Rule


@dataclass(frozen=True, kw_only=True)
class DebianPackage:
    """One locked .deb. ``path`` is relative to the root of ``archive`` on any mirror."""

    name: str
    version: str
    architecture: str
    archive: Literal["debian", "debian-security"]
    path: str
    size: int
    sha256: str
    essential: bool

    @property
    def filename(self) -> str:
        """The file's name in a local folder."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """One locked wheel; ``layer`` says which image layer it is installed in.

    One of layer ``source`` is a source archive, from which the layer ``python`` gets its wheel.
    """

    name: str
    version: str
    filename: str
    size: int
    sha256: str
    layer: Layer


@dataclass(frozen=True, kw_only=True)
class Lock:
    """All inputs of a cell by hash.

    Args:
        epoch, cuda_epoch, base_epoch: Unix seconds; of the image, and of the layers that are shared.
        base_image: the image that the cell starts from, without a digest; empty for a Debian bootstrap.
        base_digest: its digest, ``sha256:...``; empty while nobody could ask the registry.
        requirements: what was asked of the resolver, the CUDA wheels among it.
        exclude_newer: RFC 3339 time used by the resolver.
        wheel_platform: what wheels were chosen for, e.g. ``x86_64-manylinux_2_36``.
        require_cuda: value of NVIDIA_REQUIRE_CUDA: which drivers the image accepts.
        interpreter: the Python, where the base brings none of that version.
        debian_packages: what the base asked for beside the essential packages.
        debian_locked_at: RFC 3339 time of the newest of the mirror's indexes that were read.
        template: version of the templates (sha256 over the files that the base's kind uses).
        uv: version of uv that resolved; the uv that installs is a wheel of layer ``tool``.
    """

    cell: str
    platform: str
    epoch: int
    cuda_epoch: int
    base_epoch: int
    base_image: str
    base_digest: str
    requirements: tuple[str, ...]
    exclude_newer: str
    wheel_platform: str
    cuda_from: CudaFrom
    require_cuda: str
    template: str
    uv: str
    interpreter: Interpreter | None
    suite: str
    debian_packages: tuple[str, ...]
    debian_locked_at: str
    debian: tuple[DebianPackage, ...]
    wheels: tuple[Wheel, ...]
    links: tuple[Link, ...] = ()
    trim: tuple[Rule, ...] = ()
    keep: tuple[Rule, ...] = ()
    without: tuple[Rule, ...] = ()
    format: int = field(default=2)

    @property
    def complete(self) -> bool:
        """Whether every input is pinned by hash."""
        return not self.base_image or bool(self.base_digest)
