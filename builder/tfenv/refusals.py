"""What refuses one combination of row, Python and base: a table of rules, each giving its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .facts import Compiled
from .model import CudaFrom
from .schema import CudaSetSpec, DebianSpec, ExcludeSpec, NvidiaSpec, RowSpec
from .versions import order


@dataclass(frozen=True, kw_only=True)
class Combination:
    """One row x Python x base before it is accepted or refused.

    Args:
        cuda_set: what the row names for that base.
        cuda_from: where its libraries come from; None for nowhere.
    """

    row: RowSpec
    python: str
    base_name: str
    base: DebianSpec | NvidiaSpec
    cuda_set: CudaSetSpec
    cuda_from: CudaFrom | None
    facts: Compiled | str
    exclude: tuple[ExcludeSpec, ...] = ()


def cuda_source(cuda_set: CudaSetSpec, base_name: str, base: DebianSpec | NvidiaSpec) -> CudaFrom | None:
    """Where a cell's CUDA libraries come from: the image if it has them, else NVIDIA's wheels."""
    if isinstance(base, NvidiaSpec):
        image = cuda_set.images.get(base_name)
        if image is None:
            return None
        if brings_cuda(image):
            return "base"
    return "wheels" if cuda_set.wheels else None


def brings_cuda(image: str) -> bool:
    """Whether an nvidia/cuda image has the CUDA libraries and cuDNN: those of the flavour ``base`` do not."""
    return "cudnn" in image.partition("@")[0].rpartition(":")[2]


def _excluded(of: Combination) -> str | None:
    for exclude in of.exclude:
        if matches(exclude, of.row.tensorflow, of.python, of.base_name):
            return exclude.why
    return None


def _unknown_release(of: Combination) -> str | None:
    return of.facts if isinstance(of.facts, str) else None


def _no_wheel(of: Combination) -> str | None:
    if isinstance(of.facts, str) or of.python in of.facts.pythons:
        return None
    return (
        f"TensorFlow {of.row.tensorflow} has no wheel for Python {of.python}, "
        f"only for {', '.join(of.facts.pythons)}"
    )


def _no_python(of: Combination) -> str | None:
    offered = sorted({*own_pythons(of.base), *of.base.provided_pythons}, key=order)
    if of.python in offered:
        return None
    return f"{of.base_name} offers Python {', '.join(offered)}, not {of.python}"


def own_pythons(base: DebianSpec | NvidiaSpec) -> tuple[str, ...]:
    """The Pythons that are part of a base."""
    return tuple(base.pythons) if isinstance(base, DebianSpec) else ()


def _one_cuda_source(of: Combination) -> str | None:
    asked = [text for text in of.row.requirements if asks_for_cuda(text)]
    if of.cuda_from is not None:
        return f"two CUDA sources: the row asks for {asked[0]} beside its CUDA set" if asked else None
    name = f"cu{of.cuda_set.cuda}-cudnn{of.cuda_set.cudnn}"
    if isinstance(of.base, NvidiaSpec):
        return f"no CUDA source: {name} names no nvidia/cuda image for {of.base_name}"
    return f"no CUDA source: {of.base_name} brings no CUDA, and there are no wheels of {name}"


#: Asked in this order; the first reason is the one given.
REFUSALS: tuple[Callable[[Combination], str | None], ...] = (
    _excluded,
    _unknown_release,
    _no_wheel,
    _no_python,
    _one_cuda_source,
)


def refusal(of: Combination) -> str | None:
    """Why a combination is refused; None if it is accepted."""
    return next((why for rule in REFUSALS if (why := rule(of))), None)


def project(requirement: str) -> str:
    """The normalised name of the distribution that a requirement asks for."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""


def asks_for_cuda(requirement: str) -> bool:
    """Whether a requirement brings CUDA libraries as wheels."""
    return project(requirement).startswith("nvidia-") or "[and-cuda" in requirement


def matches(exclude: ExcludeSpec, tensorflow: str, python: str, base: str) -> bool:
    """Whether an exclude names a combination."""
    return (
        exclude.tensorflow in (None, tensorflow)
        and exclude.python in (None, python)
        and exclude.base in (None, base)
    )
