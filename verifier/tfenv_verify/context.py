"""What every check is given."""

from __future__ import annotations

from dataclasses import dataclass, field

from .declared import Declared
from .gpu import Gpu


@dataclass(frozen=True)
class Context:
    """What every check is given.

    Args:
        declared: the declaration of the image. gpu: what the driver says.
        expect_gpus: how many GPUs the user says there are; None if not said.
        on_cpu: for the project's own tests: so many logical CPU devices stand in for GPUs. No verdict
            can come of it: the most that the command says of it is ``unverified``.
        worker, cluster: which of the workers this is, and the addresses of all; for the suite ``workers``.
    """

    declared: Declared = field(default_factory=Declared)
    gpu: Gpu = field(default_factory=Gpu)
    expect_gpus: int | None = None
    on_cpu: int = 0
    worker: int = 0
    cluster: tuple[str, ...] = ()
