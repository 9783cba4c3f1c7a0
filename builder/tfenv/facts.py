"""What is known of a release, a library or a driver: read from data files, each number with a source.

Decisions that follow from facts alone are here too: the lowest driver of a row, and the expression
that makes the NVIDIA container runtime refuse an older one. No version number is in this code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import factfiles
from .errors import UsageError
from .versions import major, minor, order


@dataclass(frozen=True, kw_only=True)
class Ptx:
    """Kernels that a GPU's driver has to compile at first use.

    Args:
        since: the lowest compute capability that has no machine code for them, e.g. ``9.0``.
        isa: version of the PTX language, e.g. ``8.1``; what: which kernels.
        until: the last compute capability that can compile it, where its target is one architecture's own
            (``sm_90a`` runs on 9.0 alone); None for all later ones.
    """

    since: str
    isa: str
    what: str
    until: str | None = None


@dataclass(frozen=True, kw_only=True)
class Unusable:
    """Kernels that GPUs of compute capability ``since`` and higher can neither run nor compile."""

    since: str
    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What one TensorFlow release was compiled for.

    Args:
        released: RFC 3339 time of the upload; pythons: versions it has wheels for.
        cuda: ``12.2`` or ``12.5.1``, as exact as the wheel is; cudnn: ``8.9.4``, the lowest cuDNN it
            accepts within the major version.
        nccl: its version; nccl_how: ``linked`` in, ``loaded`` from outside, or "" if that was not read;
            nccl_sass: compute capabilities that a linked one has machine code for.
        sass: compute capabilities with machine code for every kernel; ptx: what is only PTX.
        source: how each of these was read.
        prerelease: a release candidate; yanked: the reason that the index gives, or "".
        deep: whether the libraries were read; without it the following, sass and ptx are unknown, not empty.
        unusable: kernels that no newer GPU can run; opens: sonames that TensorFlow opens at run time.
    """

    tensorflow: str
    released: str
    pythons: tuple[str, ...]
    cuda: str
    cudnn: str
    nccl: str
    nccl_how: str
    nccl_sass: tuple[str, ...] = ()
    sass: tuple[str, ...]
    ptx: tuple[Ptx, ...]
    source: dict[str, str]
    prerelease: bool = False
    yanked: str = ""
    deep: bool = True
    unusable: tuple[Unusable, ...] = ()
    opens: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library that TensorFlow, or one of its libraries, opens by ``soname`` at run time."""

    name: str
    soname: str
    wheel: str
    opened_by: str
    why: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The lowest driver for GPUs of compute capability ``since`` and higher, up to the next floor.

    Args:
        since: compute capability, ``0`` for any; cuda: the CUDA version such a driver reports.
    """

    since: str
    cuda: str
    driver: str
    why: str


def releases() -> tuple[str, ...]:
    """The TensorFlow releases that facts are known of, oldest first."""
    return tuple(sorted(factfiles.read("tensorflow"), key=order))


def compiled(tensorflow: str) -> Compiled:
    """What a release was compiled for.

    Raises:
        UsageError: nothing is known of that release.
    """
    facts = entry(tensorflow)
    return Compiled(
        tensorflow=tensorflow,
        released=facts["released"],
        pythons=tuple(facts["pythons"]),
        cuda=facts["cuda"],
        cudnn=facts["cudnn"],
        nccl=facts["nccl"]["version"],
        nccl_how=facts["nccl"]["how"],
        nccl_sass=tuple(facts["nccl"].get("sass", ())),
        sass=tuple(facts.get("sass", ())),
        ptx=tuple(
            Ptx(since=p["from"], isa=p["isa"], what=p["what"], until=p.get("until"))
            for p in facts.get("ptx", ())
        ),
        source=dict(facts["source"]),
        prerelease=facts["prerelease"],
        yanked=facts["yanked"],
        deep="sass" in facts,
        unusable=tuple(
            Unusable(since=u["from"], what=u["what"], why=u["why"]) for u in facts.get("unusable", ())
        ),
        opens=tuple(facts.get("opens", ())),
    )


def entry(tensorflow: str) -> dict[str, Any]:
    """All that the file holds of a release, as `tfenv facts audit` wrote it.

    Raises:
        UsageError: nothing is known of that release.
    """
    found = factfiles.read("tensorflow").get(tensorflow)
    if found is None:
        raise UsageError(
            f"what TensorFlow {tensorflow} was compiled for is not known",
            remedy=f"{_use(tensorflow)}, or read it from its wheels: tfenv facts audit --deep {tensorflow}",
        )
    return dict(found)


def _use(tensorflow: str) -> str:
    """The releases of the same minor release; where there is none, from which to which there are facts."""
    known = releases()
    head = ".".join(tensorflow.split(".")[:2])
    same = [release for release in known if minor(release) == head]
    return (
        f"use one of {', '.join(same)}" if same else f"use one from {known[0]} to {known[-1]} (tfenv facts)"
    )


def requires(tensorflow: str) -> tuple[str, ...]:
    """The Requires-Dist lines of a release's wheels, those of the ``and-cuda`` extra among them.

    Raises:
        UsageError: nothing is known of that release.
    """
    from packaging.requirements import Requirement

    entry(tensorflow)
    audited = factfiles.read("wheels/tensorflow")
    lines = audited["releases"][tensorflow]["read"]["requires"]
    return tuple(sorted(str(Requirement(line)) for line in lines))


def floors(facts: Compiled, cuda: str) -> tuple[Floor, ...]:
    """The lowest drivers for a release with libraries of a CUDA version, by compute capability.

    Machine code runs on any driver of the CUDA major version. PTX does not: a driver compiles only
    the PTX of its own CUDA version and older.

    Raises:
        UsageError: nothing is known of that CUDA major version or PTX version.
    """
    drivers = factfiles.read("drivers")
    lowest = _row(drivers, "minor_version_floor", major(cuda), "CUDA major version")
    result = [
        Floor(
            since="0",
            cuda=lowest["cuda"],
            driver=lowest["driver"],
            why=f"minor-version compatibility of CUDA {major(cuda)}",
        )
    ]
    for ptx in sorted(facts.ptx, key=lambda p: order(p.since)):
        first = _row(drivers, "ptx", ptx.isa, "PTX version")
        floor = Floor(since=ptx.since, cuda=lowest["cuda"], driver=lowest["driver"], why=result[0].why)
        if order(first) > order(lowest["cuda"]):
            floor = Floor(
                since=ptx.since,
                cuda=first,
                driver=_row(drivers, "toolkit", first, "CUDA version")["GA"],
                why=f"{ptx.what}: only PTX {ptx.isa}, which drivers compile from CUDA {first} on",
            )
        if (floor.cuda, floor.driver) != (result[-1].cuda, result[-1].driver):
            result.append(floor)
    return tuple(result)


def require_expression(of: tuple[Floor, ...]) -> str:
    """Floors in the language of NVIDIA_REQUIRE_CUDA: spaces mean *or*, commas mean *and*.

    The highest requirement comes first and alone, because the runtime quotes the first term when it
    refuses: github.com/NVIDIA/libnvidia-container, src/cli/dsl.c. ``driver>=`` would be nearer the
    facts, but the newer runtime reads versions as semantic ones and rejects the zero of 450.80.02.
    """
    highest = max(of, key=lambda floor: order(floor.cuda)).cuda
    terms = [f"cuda>={highest}"]
    bounded = zip(of, (*of[1:], None), strict=True)
    for floor, following in sorted(bounded, key=lambda pair: order(pair[0].cuda), reverse=True):
        if floor.cuda == highest:
            continue
        term = f"cuda>={floor.cuda}"
        if floor.since != "0":
            term += f",arch>={floor.since}"
        if following is not None:
            term += f",arch<{following.since}"
        terms.append(term)
    return " ".join(terms)


def driver_floor(tensorflow: str, cuda: str) -> tuple[Floor, ...]:
    """The lowest drivers that run a release with libraries of a CUDA version, by compute capability."""
    return floors(compiled(tensorflow), cuda)


def require_cuda(tensorflow: str, cuda: str) -> str:
    """The value of NVIDIA_REQUIRE_CUDA for both, e.g. ``cuda>=12.1 cuda>=12.0,arch<9.0``."""
    return require_expression(driver_floor(tensorflow, cuda))


def _row(drivers: Any, table: str, key: str, what: str) -> Any:
    rows = drivers[table]["rows"]
    if key not in rows:
        raise UsageError(
            f"the driver for {what} {key} is not known",
            remedy=f"add it to '{table}' in builder/tfenv/facts/drivers.json, with its source",
        )
    return rows[key]
