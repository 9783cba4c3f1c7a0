"""The nouns of the design as frozen dataclasses: row, cell, lock and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

CudaFrom = Literal["base", "wheels"]
Layer = Literal["cuda", "python", "tool"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Something left out or kept on purpose, with the reason a person gave."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Base:
    """What an image starts from.

    Args:
        name: e.g. ``debian12``.
        kind: ``debian`` (bootstrapped from Debian packages).
        suite: the release's code name, e.g. ``bookworm``.
        pythons: versions (``3.11``) that the base brings itself.
        cuda_from: the one CUDA source of every cell on this base.
        packages: Debian packages wanted beside the essential ones.
        epoch: Unix seconds; file times in the base layer are clamped to it.
    """

    name: str
    kind: Literal["debian"]
    suite: str
    pythons: tuple[str, ...]
    cuda_from: CudaFrom
    packages: tuple[str, ...]
    epoch: int


@dataclass(frozen=True, kw_only=True)
class CudaSet:
    """The CUDA libraries that rows share: one set, one layer.

    Args:
        cuda: ``12.2``; cudnn: ``8.9``.
        epoch: Unix seconds; the image's creation time and the upper bound of its file times.
        without: wheels of the set that nothing loads, not installed.
    """

    cuda: str
    cudnn: str
    epoch: int
    without: tuple[Rule, ...] = ()

    @property
    def name(self) -> str:
        """The set's part of a cell's name, e.g. ``cu12.2-cudnn8.9``."""
        return f"cu{self.cuda}-cudnn{self.cudnn}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One TensorFlow release with the CUDA and cuDNN it was compiled for.

    Args:
        exclude_newer: RFC 3339 time; no wheel uploaded later is locked.
        requirements: what is asked of the resolver, e.g. ``tensorflow[and-cuda]==2.15.1``.
        trim: files (globs under site-packages) left out of the image, with the reason.
        keep: globs that win over ``trim``, with the reason.
    """

    tensorflow: str
    cuda_set: CudaSet
    pythons: tuple[str, ...]
    bases: tuple[str, ...]
    default_base: str
    default_python: str
    exclude_newer: str
    requirements: tuple[str, ...]
    trim: tuple[Rule, ...] = ()
    keep: tuple[Rule, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A row x Python x base: one environment."""

    row: Row
    python: str
    base: Base

    @property
    def name(self) -> str:
        """Canonical name, e.g. ``2.15.1-cu12.2-cudnn8.9-py3.11-debian12``."""
        return f"{self.row.tensorflow}-{self.row.cuda_set.name}-py{self.python}-{self.base.name}"


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """All of matrix.yaml: ``cells`` are accepted, ``refused`` are not, each with the reason."""

    repository: str
    cells: tuple[Cell, ...]
    refused: tuple[tuple[str, str], ...]
    bases: tuple[Base, ...]
    rows: tuple[Row, ...]


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
    """One locked wheel; ``layer`` says which image layer it is installed in."""

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
        epoch: Unix seconds; base_epoch: the same for the base layer.
        requirements: what the row asked the resolver for.
        exclude_newer: RFC 3339 time used by the resolver.
        require_cuda: value of NVIDIA_REQUIRE_CUDA: which drivers the image accepts.
        debian_packages: what the base asked for beside the essential packages.
        debian_locked_at: RFC 3339 time of the newest of the mirror's indexes that were read.
        template: version of the templates (sha256 over the template files).
        uv: version of uv that resolved; the uv that installs is a wheel of layer ``tool``.
    """

    cell: str
    platform: str
    epoch: int
    base_epoch: int
    requirements: tuple[str, ...]
    exclude_newer: str
    cuda_from: CudaFrom
    require_cuda: str
    template: str
    uv: str
    suite: str
    debian_packages: tuple[str, ...]
    debian_locked_at: str
    debian: tuple[DebianPackage, ...]
    wheels: tuple[Wheel, ...]
    trim: tuple[Rule, ...] = ()
    keep: tuple[Rule, ...] = ()
    without: tuple[Rule, ...] = ()
    format: int = field(default=1)
