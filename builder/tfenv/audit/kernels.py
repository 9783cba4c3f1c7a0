"""For which GPUs a TensorFlow has machine code, what the driver has to compile, and what no GPU can run.

The rules are CUDA's: machine code runs on its own compute capability and on higher ones of the same major
version; PTX is compiled for its own capability and all higher ones, unless its target is one architecture's
own (``sm_90a``): https://docs.nvidia.com/cuda/cuda-c-programming-guide/#application-compatibility
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tfenv.audit.fatbin import capability
from tfenv.versions import order

#: Input of the device linker: it stays in the library, and nothing loads it.
_NOT_LOADED = "__nv_relfatbin"
_WHAT = {
    "element-wise": "the element-wise kernels that MLIR generates",
    "compiled": "the kernels that nvcc or clang compiled",
}


@dataclass(frozen=True)
class _Part:
    """Kernels of one kind in fatbins that are alike.

    ``since``: the lowest capability above all machine code; ``until``: the only one that can compile the
    PTX, where that is so; ``isa``: "" where there is no PTX.
    """

    kind: str
    fatbins: int
    library: str
    sass: tuple[str, ...]
    since: str
    isa: str
    until: str | None
    target: str


def kernel_facts(libraries: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """``sass``, ``ptx`` and ``unusable`` of a release, and how each was read."""
    parts = [p for p in _parts(libraries) if p.kind in _WHAT]
    every = [set(p.sass) for p in parts]
    sass = sorted(set.intersection(*every), key=order) if every else []
    facts = {"sass": sass, "ptx": _ptx(parts), "unusable": _unusable(parts)}
    counted = "; ".join(_said(p) for p in parts)
    return facts, {
        "sass": f"fatbin headers, what all of these have in common: {counted}",
        "ptx": "fatbin headers and the .version and .target of the PTX in them, as listed under sass",
        "unusable": "kernels without machine code for these GPUs and without PTX that they can compile, "
        "as listed under sass",
    }


def nccl_sass(libraries: Mapping[str, Any]) -> list[str] | None:
    """Compute capabilities that a linked NCCL has machine code for; None where none is linked."""
    linked = [set(p.sass) for p in _parts(libraries) if p.kind == "nccl"]
    return sorted(set.intersection(*linked), key=order) if linked else None


def _parts(libraries: Mapping[str, Any]) -> list[_Part]:
    return [
        _part(name.rsplit("/", 1)[-1], group)
        for name, library in libraries.items()
        for group in library["fatbins"]
        if group["section"] != _NOT_LOADED and group["kernels"]
    ]


def _part(library: str, group: Mapping[str, Any]) -> _Part:
    sass = tuple(group["sass"])
    own = [s for s in sass if not s.endswith("a")]
    since = _next_major(max(own, key=order)) if own else "0.0"
    best = max(group["ptx"], key=lambda p: order(p["isa"]), default=None)
    if best is None:
        return _Part(group["kernels"], group["fatbins"], library, sass, since, "", None, "")
    number = best["target"].removeprefix("sm_")
    lowest = capability(int(number.rstrip("af")))
    return _Part(
        kind=group["kernels"],
        fatbins=group["fatbins"],
        library=library,
        sass=sass,
        since=max(since, lowest, key=order),
        isa=best["isa"],
        until=lowest if number.endswith("a") else None,
        target=best["target"],
    )


def _next_major(of: str) -> str:
    return f"{int(of.partition('.')[0]) + 1}.0"


def _ptx(parts: Iterable[_Part]) -> list[dict[str, str]]:
    """From each capability on that lacks machine code: what has to be compiled there, and the newest PTX."""
    parts = list(parts)
    found = []
    for since in sorted({p.since for p in parts if p.isa}, key=order):
        lacking = [p for p in parts if order(p.since) <= order(since)]
        able = [p for p in lacking if p.isa and (p.until is None or order(p.until) >= order(since))]
        if not able:
            continue
        entry = {
            "from": since,
            "isa": max((p.isa for p in able), key=order),
            "what": _what(able, lacking, parts),
        }
        ends = [p.until for p in able if p.until]
        if ends:
            entry["until"] = min(ends, key=order)
        found.append(entry)
    return found


def _what(able: list[_Part], lacking: list[_Part], parts: list[_Part]) -> str:
    if len(able) == len(parts):
        return "every kernel"
    if len(lacking) == len(parts):
        return "every other kernel"
    return " and ".join(sorted({_WHAT[p.kind] for p in able}, reverse=True))


def _unusable(parts: Iterable[_Part]) -> list[dict[str, str]]:
    """Kernels that GPUs from a capability on can neither run nor compile."""
    found = []
    for part in parts:
        if part.until:
            entry = {"from": _next_major(part.until), "why": f"their PTX is for {part.target} alone"}
        elif not part.isa:
            entry = {"from": part.since, "why": "they have no PTX"}
        else:
            continue
        entry = {"from": entry["from"], "what": _WHAT[part.kind], "why": entry["why"]}
        if entry not in found:
            found.append(entry)
    return sorted(found, key=lambda e: (order(e["from"]), e["what"]))


def _said(part: _Part) -> str:
    ptx = f"PTX {part.isa} for {part.target}" if part.isa else "no PTX"
    return (
        f"{part.fatbins} fatbins of {_WHAT[part.kind]} in {part.library}: "
        f"machine code for {', '.join(part.sass) or 'nothing'}, {ptx}"
    )
