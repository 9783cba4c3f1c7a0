"""The GPUs that a reader can pick. Those of one compute capability and kind get one answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """GPUs that are asked about together.

    Args:
        compute_capability: e.g. ``9.0``; architecture: e.g. ``Hopper``.
        kind: ``data-centre``, ``workstation``, ``geforce`` (NVIDIA's rules for drivers differ), or empty.
        host: the platform of the only hosts that it is found in, e.g. ``linux/arm64``; empty for any.
        names: of products; may be empty.
    """

    compute_capability: str
    architecture: str
    kind: str = ""
    host: str = ""
    names: tuple[str, ...] = ()

    @property
    def sort(self) -> str:
        """What sort of GPU it is, in words."""
        return f"{self.kind} in {self.host} hosts" if self.host else self.kind

    @property
    def shown(self) -> tuple[str, ...]:
        """What a reader can pick: the names, or the compute capability where there are none."""
        return self.names or (f"compute capability {self.compute_capability}",)


def known() -> tuple[Gpu, ...]:
    """All GPUs that facts are known of, by compute capability, the lowest first."""
    from tfenv import gpus

    made = []
    for of, names in gpus.all_capabilities():
        kinds: dict[tuple[str, str], list[str]] = {}
        for name in names:
            found = gpus.find(name)
            kinds.setdefault((found.kind, found.host) if found else ("", ""), []).append(name)
        made += [
            Gpu(
                compute_capability=of.capability,
                architecture=of.architecture,
                kind=kind,
                host=host,
                names=tuple(kinds[kind, host]),
            )
            for kind, host in sorted(kinds)
        ] or [Gpu(compute_capability=of.capability, architecture=of.architecture)]
    return tuple(made)


def capability(name: str) -> str | None:
    """The compute capability of a GPU by the name that its driver gives; None if it is not known."""
    from tfenv import gpus

    found = gpus.find(name)
    return found.capability if found else None


def by_capability(gpus: Iterable[Gpu]) -> tuple[tuple[Gpu, ...], ...]:
    """The kinds of each compute capability together."""
    return tuple(tuple(same) for _, same in groupby(gpus, key=lambda gpu: gpu.compute_capability))


def labels(gpus: Iterable[Gpu], every: Iterable[Gpu]) -> tuple[tuple[str, str], ...]:
    """How to name some of all GPUs.

    Returns:
        Compute capabilities, as in ``3.5, 3.7``; architecture and, if not all are meant, the kinds.
    """
    all_kinds = {same[0].compute_capability: len(same) for same in by_capability(every)}
    made: dict[str, list[str]] = {}
    for same in by_capability(gpus):
        first = same[0]
        some = len(same) < all_kinds[first.compute_capability]
        kinds = f" ({', '.join(gpu.sort for gpu in same)})" if some else ""
        made.setdefault(first.architecture + kinds, []).append(first.compute_capability)
    return tuple((", ".join(capabilities), words) for words, capabilities in made.items())
