"""A seeded fault: how it is made, and who has to find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Declared = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault.

    Args:
        check: the one that has to find it. cause: pattern of its finding's message and evidence.
        severity: of that finding; an ``error`` is a failed check.
        seeds: functions of seeds/, which change Python. env: variables.
        absent: globs of the image's files that are emptied. gpus, shm: options of the run.
        expect_gpus: what the user says there are.
        declare: takes what is declared of the image, returns what is declared instead.
        limit: seconds for what hangs; the suite's own limit is 100 s and more.
        run: faults with the same name here are seeded together, to save the import of TensorFlow.
        least_gpus: without so many it cannot be seeded.
        on_cpu: whether a CPU that stands in for the GPU shows it as well.
        alone: whether other processes on the same GPU would disturb it.
    """

    name: str
    check: str
    cause: str
    severity: str = "error"
    seeds: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    gpus: str = "all"
    shm: str = "2g"
    expect_gpus: int | None = None
    declare: Callable[[Declared], Declared] | None = None
    limit: int = 0
    run: str = ""
    least_gpus: int = 1
    on_cpu: bool = True
    alone: bool = False


@dataclass(frozen=True)
class Run:
    """Faults that are seeded together."""

    name: str
    faults: tuple[Fault, ...]

    @property
    def check(self) -> str:
        """The check that has to find all of them."""
        return self.faults[0].check

    @property
    def seeds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(seed for fault in self.faults for seed in fault.seeds))

    @property
    def env(self) -> dict[str, str]:
        return {name: value for fault in self.faults for name, value in fault.env.items()}

    @property
    def absent(self) -> tuple[str, ...]:
        return tuple(pattern for fault in self.faults for pattern in fault.absent)

    @property
    def gpus(self) -> str:
        return next((fault.gpus for fault in self.faults if fault.gpus != "all"), "all")

    @property
    def shm(self) -> str:
        return next((fault.shm for fault in self.faults if fault.shm != "2g"), "2g")

    @property
    def expect_gpus(self) -> int | None:
        return next((f.expect_gpus for f in self.faults if f.expect_gpus is not None), None)

    @property
    def limit(self) -> int:
        return max(fault.limit for fault in self.faults)

    @property
    def alone(self) -> bool:
        return any(fault.alone for fault in self.faults)

    def declare(self, declared: Declared) -> Declared:
        """What is declared of the image in this run."""
        for fault in self.faults:
            declared = fault.declare(declared) if fault.declare else declared
        return declared


def runs(faults: Sequence[Fault]) -> list[Run]:
    """The faults by run, in their order."""
    grouped: dict[str, list[Fault]] = {}
    for fault in faults:
        grouped.setdefault(fault.run or fault.name, []).append(fault)
    return [Run(name, tuple(members)) for name, members in grouped.items()]
