"""What refuses one combination of row, Python and base: a table of rules, each giving its reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .facts import Compiled
from .schema import BaseSpec, ExcludeSpec, RowSpec

#: Kinds of base, and whether one can bring CUDA libraries itself.
BRINGS_CUDA: Mapping[str, bool] = {"debian": False}


@dataclass(frozen=True, kw_only=True)
class Combination:
    """One row x Python x base before it is accepted or refused."""

    row: RowSpec
    python: str
    base_name: str
    base: BaseSpec
    requirements: tuple[str, ...]
    facts: Compiled | str
    exclude: tuple[ExcludeSpec, ...] = ()


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
    if of.python in of.base.pythons:
        return None
    return f"{of.base_name} brings Python {', '.join(of.base.pythons)}, not {of.python}"


def _one_cuda_source(of: Combination) -> str | None:
    asked = [text for text in of.requirements if asks_for_cuda(text)]
    brought = of.base.cuda_from == "base" and BRINGS_CUDA[of.base.kind]
    if brought and asked:
        return f"two CUDA sources: {of.base_name} brings CUDA, and the row asks for {asked[0]} too"
    if of.base.cuda_from == "base" and not brought:
        return f"no CUDA source: {of.base_name} brings no CUDA; say cuda_from: wheels"
    if not brought and not asked:
        return "no CUDA source: the row asks for no CUDA wheels; add them to its cuda_wheels"
    return None


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
