"""What the program in the image has said, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["ok", "hung", "failed", "left-out"]
#: ``float32`` is without TF32, ``tf32`` is float32 with it.
Precision = Literal["float32", "tf32", "mixed_float16", "mixed_bfloat16"]
#: How gradients of several GPUs are summed; empty for one GPU.
Reduction = Literal["", "nccl", "hierarchical_copy", "reduction_to_one_device"]


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU as NVML knows it. Celsius, watts, MHz, bytes; None where it does not tell.

    Args:
        before, after: counters of memory errors by name.
    """

    index: int
    name: str = ""
    slowdown_celsius: float | None = None
    limit_watts: float | None = None
    max_sm_mhz: float | None = None
    memory_bytes: int | None = None
    before: Mapping[str, int | None] = field(default_factory=dict)
    after: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look at one GPU, ``t`` seconds after the start."""

    t: float
    gpu: int
    celsius: float | None = None
    memory_celsius: float | None = None
    sm_mhz: float | None = None
    watts: float | None = None
    busy_percent: float | None = None
    throttle: int | None = None


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Products of one GPU in one precision, up to ``t``.

    Args:
        wrong: batches of 8 products with a wrong one; differing: groups of 8 bytes that were not equal.
    """

    t: float
    gpu: int
    precision: str
    products: int
    wrong: int
    tflops: float
    differing: int = 0


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The first product of a GPU against the CPU's and the first GPU's, relative to the largest element."""

    gpu: int
    precision: str
    to_cpu: float
    to_first_gpu: float
    equal_bits: bool
    tolerance: float


@dataclass(frozen=True, kw_only=True)
class Xid:
    """An Xid error; ``gpu`` is -1 where only ``pci`` tells which."""

    xid: int
    gpu: int = -1
    pci: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Stress:
    """A whole run.

    Args:
        why: why it was not run to its end; empty if it was. tail: the last it printed then.
        unsampled: why NVML could not be asked. xid_sources: where Xid errors were looked for.
        broke: by GPU why its products ended.
    """

    minutes: float
    started: int
    seconds: float
    facts: Mapping[str, Any]
    driver: str = ""
    tensorflow: str = ""
    size: int = 0
    devices: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    samples: tuple[Sample, ...] = ()
    progress: tuple[Progress, ...] = ()
    compared: tuple[Compared, ...] = ()
    xids: tuple[Xid, ...] = ()
    xid_sources: tuple[str, ...] = ()
    broke: Mapping[int, str] = field(default_factory=dict)
    unsampled: str = ""
    why: str = ""
    tail: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One configuration of a bench. Items (images or tokens) a second, seconds, bytes.

    Args:
        low, high: of the repeats, of which ``throughput`` is the median.
        first_step: with all that is compiled for it. why: why there are no figures.
        lanes: configurations that were measured at the same time, each on a GPU of its own.
    """

    model: str
    precision: Precision
    xla: bool
    gpus: int
    reduction: Reduction
    batch: int
    status: Outcome
    why: str = ""
    error: str = ""
    unit: str = ""
    throughput: float = 0.0
    low: float = 0.0
    high: float = 0.0
    repeats: int = 0
    steps: int = 0
    step_ms: float = 0.0
    first_step: float = 0.0
    seconds: float = 0.0
    memory: int | None = None
    lanes: int = 1

    @property
    def words(self) -> str:
        """The configuration as people say it."""
        name = {"tf32": "float32 (TF32)", "float32": "float32 (no TF32)"}.get(self.precision, self.precision)
        said = f"{name} + XLA" if self.xla else name
        return said if self.gpus == 1 else f"{said}, {self.gpus} GPUs, {self.reduction}"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A whole run; ``why`` says why nothing was measured."""

    started: int
    seconds: float
    facts: Mapping[str, Any]
    told: Mapping[str, Any]
    rows: tuple[Row, ...]
    driver: str = ""
    tensorflow: str = ""
    devices: tuple[str, ...] = ()
    why: str = ""
