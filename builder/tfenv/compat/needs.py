"""What a release with libraries needs of a host, where no GPU and no driver was named."""

from __future__ import annotations

from dataclasses import dataclass

from tfenv import gpus
from tfenv.facts import Compiled, floors

from .runs import runs


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What of GPUs and drivers will do.

    Args:
        drivers: pairs of a compute capability (``0`` for any) and the lowest driver from that one on.
        runs, limited, refused: compute capabilities, the lowest first.
    """

    drivers: tuple[tuple[str, str], ...]
    runs: tuple[str, ...]
    limited: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def in_words(self) -> str:
        """All of it in one line."""
        (_, first), *others = self.drivers
        told = [f"driver {first} or newer"]
        told += [f"from compute capability {since} on {driver}" for since, driver in others]
        kinds = (("run", self.runs), ("run with limits", self.limited))
        able = [f"{self._ranges(of)} {how}" for how, of in kinds if of]
        return f"{', '.join(told)}; GPUs of compute capability {', '.join(able) or 'none'}"

    def _ranges(self, chosen: tuple[str, ...]) -> str:
        """Neighbours together: ``5.0 to 7.5``."""
        every = [gpu.capability for gpu, _ in gpus.all_capabilities()]
        found: list[list[str]] = []
        for one in chosen:
            if found and every.index(found[-1][-1]) + 1 == every.index(one):
                found[-1].append(one)
            else:
                found.append([one])
        return " and ".join(of[0] if len(of) == 1 else f"{of[0]} to {of[-1]}" for of in found)


def needs(facts: Compiled, cuda: str, cudnn: str) -> Needs:
    """What a release needs with libraries of these versions.

    Raises:
        UsageError: nothing is known of the drivers of that CUDA.
    """
    outcomes = {
        gpu.capability: runs(facts, cuda, cudnn, gpu.capability, None).outcome
        for gpu, _ in gpus.all_capabilities()
    }

    def which(outcome: str) -> tuple[str, ...]:
        return tuple(one for one, found in outcomes.items() if found == outcome)

    return Needs(
        drivers=tuple((floor.since, floor.driver) for floor in floors(facts, cuda)),
        runs=which("runs"),
        limited=which("limit"),
        refused=which("refused"),
    )
