"""Which kernels of a release a GPU can run: machine code, PTX that the driver compiles, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfenv.factfiles import read
from tfenv.facts import Compiled, Ptx, Unusable
from tfenv.versions import major, order

Library = Literal["cublas", "cudnn"]


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What a GPU finds in a wheel.

    Args:
        has_code: every kernel is there as machine code or as PTX that can be compiled for the GPU.
        compiled_at_first_use: the kernels that are only PTX.
        unusable: kernels that the GPU can neither run nor have compiled.
        oldest: the lowest compute capability with machine code, where the GPU is older than that.
    """

    has_code: bool
    compiled_at_first_use: tuple[Ptx, ...] = ()
    unusable: Unusable | None = None
    oldest: str = ""


def reach(facts: Compiled, capability: str) -> Reach:
    """What a GPU of a compute capability (``9.0``) finds in a release whose libraries were read."""
    if facts.sass and order(capability) < min(map(order, facts.sass)):
        return Reach(has_code=False, oldest=min(facts.sass, key=order))
    unusable = [some for some in facts.unusable if order(some.since) <= order(capability)]
    if unusable:
        return Reach(has_code=False, unusable=unusable[0])
    waiting = tuple(ptx for ptx in facts.ptx if order(ptx.since) <= order(capability))
    own = any(runs_on(one, capability) for one in facts.sass)
    return Reach(has_code=bool(own or waiting), compiled_at_first_use=waiting)


def runs_on(code: str, capability: str) -> bool:
    """Whether machine code for ``8.0`` runs on a GPU of ``8.6``: same major version, not newer."""
    return major(code) == major(capability) and order(code) <= order(capability)


@dataclass(frozen=True, kw_only=True)
class Lack:
    """A library without code for a GPU: what it has code for, and the version since which that is so."""

    lowest: str
    highest: str
    since: str


def library_lacks(library: Library, version: str, capability: str) -> Lack | None:
    """What a library has code for, unless the GPU is among it.

    Args:
        version: of CUDA for cuBLAS, of cuDNN for cuDNN; one that no wheel was read of gives None.
    """
    rows = _of_major(library, version)
    older = [since for since in rows if order(since) <= order(version)]
    if not older:
        return None
    since = max(older, key=order)
    lowest, highest = rows[since]
    if _covers(lowest, highest, capability):
        return None
    return Lack(lowest=lowest, highest=highest, since=since)


def dropped_since(library: Library, version: str, capability: str) -> str | None:
    """From which version on a library of the major one of ``version`` has no more code for a GPU."""
    since = None
    for row, (lowest, _) in sorted(_of_major(library, version).items(), key=lambda item: order(item[0])):
        since = (since or row) if order(capability) < order(lowest) else None
    return since


def could_run(facts: Compiled, capability: str) -> bool:
    """Whether a release runs on a GPU with the best of the libraries that serve it."""
    return (
        facts.deep
        and reach(facts, capability).has_code
        and all(
            any(_covers(*row, capability) for row in _of_major(library, version).values())
            for library, version in (("cublas", facts.cuda), ("cudnn", facts.cudnn))
        )
    )


def in_words(kernels: tuple[Ptx, ...]) -> str:
    """Kernels by name, e.g. ``every kernel``."""
    names = list(dict.fromkeys(ptx.what for ptx in kernels))
    return next((name for name in names if name == "every kernel"), " and ".join(names))


def jit_time(kernels: tuple[Ptx, ...]) -> tuple[str, str]:
    """How long compiling at first use takes, in words, and how that is known."""
    whole = any("every" in ptx.what for ptx in kernels)
    row = next(r for r in read("kernels")["jit_time"]["rows"] if not r["what"] or whole)
    return row["time"], row["source"]


def nccl_seen() -> str:
    """What was seen where NCCL has no code for a GPU."""
    return str(read("kernels")["nccl_hang"]["seen"])


def source(table: str) -> str:
    """How a table is known."""
    return str(read("kernels")[table]["source"])


def _of_major(library: str, version: str) -> dict[str, tuple[str, str]]:
    rows = read("kernels")[library]["rows"]
    return {since: tuple(row) for since, row in rows.items() if major(since) == major(version)}


def _covers(lowest: str, highest: str, capability: str) -> bool:
    return order(capability) >= order(lowest) and int(major(capability)) <= int(major(highest))
