"""What matrix.yaml tells of: bases, CUDA sets, rows, and the cells and environments made of them."""

from __future__ import annotations

from dataclasses import dataclass

from tfenv.times import unix

from .parts import BaseKind, CudaFrom, Link, Rule


@dataclass(frozen=True, kw_only=True)
class Base:
    """What an image starts from.

    Args:
        name: e.g. ``debian12``.
        kind: ``debian`` (bootstrapped from Debian packages) or ``nvidia`` (an nvidia/cuda image).
        suite: Debian's code name, e.g. ``bookworm``; empty for an image.
        glibc: C library of an image, e.g. ``2.35``; empty where the Debian packages tell.
        pythons: versions (``3.11``) that the base brings, and the Debian packages that do.
        provided_pythons: versions that a provider brings.
        packages: Debian packages wanted beside the essential ones.
        epoch: Unix seconds; file times in the base layer are clamped to it. 0 for an image.
    """

    name: str
    kind: BaseKind
    suite: str = ""
    glibc: str = ""
    pythons: tuple[tuple[str, tuple[str, ...]], ...] = ()
    provided_pythons: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    epoch: int = 0

    def brings(self, python: str) -> bool:
        """Whether that Python is part of the base itself."""
        return any(own == python for own, _ in self.pythons)

    def offers(self, python: str) -> bool:
        """Whether a cell with that Python can be made on the base."""
        return self.brings(python) or python in self.provided_pythons

    def packages_for(self, python: str) -> tuple[str, ...]:
        """The Debian packages of a cell with that Python."""
        return (*self.packages, *dict(self.pythons).get(python, ()))


@dataclass(frozen=True, kw_only=True)
class CudaSet:
    """The CUDA libraries that rows share: one set, one layer.

    Args:
        cuda: ``12.2``; cudnn: ``8.9``.
        epoch: Unix seconds; the upper bound of the layer's file times.
        wheels: NVIDIA's wheels, pinned, that make the set on a base without CUDA.
        images: by base the nvidia/cuda image, with its digest where that is known.
        tools: pinned wheels of what such an image lacks.
        links: second names of libraries.
        without: wheels of the set that nothing loads, not installed.
    """

    cuda: str
    cudnn: str
    epoch: int
    wheels: tuple[str, ...] = ()
    images: tuple[tuple[str, str], ...] = ()
    tools: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    without: tuple[Rule, ...] = ()

    @property
    def name(self) -> str:
        """The set's part of a cell's name, e.g. ``cu12.2-cudnn8.9``."""
        return f"cu{self.cuda}-cudnn{self.cudnn}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One TensorFlow release.

    Args:
        exclude_newer: RFC 3339 time; no wheel uploaded later is locked.
        requirements: what is asked of the resolver beside the CUDA set, e.g. ``tensorflow==2.15.1``.
        other_libraries: why libraries serve that are newer than what it was compiled for.
        from_source: packages that have no wheel of the version needed, only a source archive.
        trim: files (globs under site-packages) left out of the image, with the reason.
        keep: globs that win over ``trim``, with the reason.
    """

    tensorflow: str
    pythons: tuple[str, ...]
    bases: tuple[str, ...]
    default_base: str
    default_python: str
    exclude_newer: str
    requirements: tuple[str, ...]
    other_libraries: str = ""
    from_source: tuple[Rule, ...] = ()
    trim: tuple[Rule, ...] = ()
    keep: tuple[Rule, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A row x Python x base: one environment.

    Args:
        cuda_set: the CUDA libraries in the image; cuda_from: their one source.
    """

    row: Row
    python: str
    base: Base
    cuda_set: CudaSet
    cuda_from: CudaFrom

    @property
    def name(self) -> str:
        """Canonical name, e.g. ``2.15.1-cu12.2-cudnn8.9-py3.11-debian12``."""
        return f"{self.row.tensorflow}-{self.cuda_set.name}-py{self.python}-{self.base.name}"

    @property
    def image(self) -> str:
        """The image that the cell starts from, with its digest if the matrix gives it; empty for none."""
        return dict(self.cuda_set.images).get(self.base.name, "") if self.base.kind == "nvidia" else ""

    @property
    def cuda_wheels(self) -> tuple[str, ...]:
        """NVIDIA's wheels that are asked for."""
        return self.cuda_set.wheels if self.cuda_from == "wheels" else self.cuda_set.tools

    @property
    def requirements(self) -> tuple[str, ...]:
        """All that is asked of the resolver, in one run."""
        return (*self.row.requirements, *self.cuda_wheels)

    @property
    def epoch(self) -> int:
        """Unix seconds; creation time of the image and upper bound of its file times."""
        return max(unix(self.row.exclude_newer), self.cuda_set.epoch, self.base.epoch)


@dataclass(frozen=True, kw_only=True)
class Environment(Cell):
    """A team's own environment: a row's cell, and the team's packages in layers on top of its image.

    Args:
        title: what it is called, e.g. ``vision``.
        asked: the team's requirements, those of its extras among them.
        apt: Debian packages wanted on top, those of its extras among them.
        extras: names of ready-made additions.
        exclude_newer: RFC 3339 time; no wheel of the team's uploaded later is locked.
    """

    title: str
    asked: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    exclude_newer: str

    @property
    def name(self) -> str:
        """The name that the team gave it."""
        return self.title

    @property
    def start(self) -> Cell:
        """The cell whose image it extends."""
        return Cell(
            row=self.row,
            python=self.python,
            base=self.base,
            cuda_set=self.cuda_set,
            cuda_from=self.cuda_from,
        )

    @property
    def requirements(self) -> tuple[str, ...]:
        """All that is asked of the resolver: the row's and the team's."""
        return (*super().requirements, *self.asked)

    @property
    def epoch(self) -> int:
        """Unix seconds; upper bound of the file times of the team's layers."""
        return max(super().epoch, unix(self.exclude_newer))


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """All of matrix.yaml: ``cells`` are accepted, ``refused`` are not, each with the reason.

    ``environments`` are the team's own, which extend some of the cells.
    """

    repository: str
    cells: tuple[Cell, ...]
    refused: tuple[tuple[str, str], ...]
    bases: tuple[Base, ...]
    rows: tuple[Row, ...]
    environments: tuple[Environment, ...] = ()
