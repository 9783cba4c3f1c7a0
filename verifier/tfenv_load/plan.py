"""Which configurations are measured, and in which order. Nothing here knows TensorFlow."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Iterable, Mapping, Sequence

PRECISIONS = ("float32", "tf32", "mixed_float16", "mixed_bfloat16")
REDUCTIONS = ("hierarchical_copy", "nccl", "reduction_to_one_device")
OK, HUNG, FAILED, LEFT_OUT = "ok", "hung", "failed", "left-out"

_GIB = 1 << 30
# Examples for one GPU, by the least memory (bytes) that it then needs.
_BATCHES = {
    "resnet50": ((40 * _GIB, 256), (20 * _GIB, 128), (10 * _GIB, 64), (0, 32)),
    "transformer": ((40 * _GIB, 32), (20 * _GIB, 16), (10 * _GIB, 8), (0, 4)),
}


@dataclass(frozen=True)
class Config:
    """One configuration.

    Args:
        precision: ``float32`` is without TF32, ``tf32`` is float32 with it.
        reduction: how gradients of several GPUs are summed; empty for one GPU.
        batch: examples for each GPU.
    """

    model: str
    precision: str
    xla: bool
    gpus: int = 1
    reduction: str = ""
    batch: int = 0

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def from_json(data: Mapping[str, Any]) -> Config:
    """Back from ``as_json``; more keys are no fault."""
    return Config(**{name: data[name] for name in Config.__dataclass_fields__})


def batch_for(model: str, memory: int) -> int:
    """Examples for a GPU with that much memory (bytes; 0: unknown, taken as small)."""
    return next(batch for least, batch in _BATCHES[model] if memory >= least)


def singles(models: Sequence[str], quick: bool) -> list[Config]:
    """On one GPU: every precision with and without XLA; quickly, only what most people choose between."""
    found = []
    for model in models:
        for xla in (False, True):
            for precision in PRECISIONS:
                common = precision == "mixed_float16" or (precision == "tf32" and not xla)
                common = common or (model == "resnet50" and xla and precision == "mixed_bfloat16")
                if common or not quick:
                    found.append(Config(model, precision, xla))
    return found


def best(rows: Iterable[Mapping[str, Any]], model: str, **wanted: Any) -> Mapping[str, Any] | None:
    """The row of the model with the highest throughput of those that ran and are as ``wanted``."""
    fit = [
        row
        for row in rows
        if row["status"] == OK and row["model"] == model and all(row[k] == v for k, v in wanted.items())
    ]
    return max(fit, key=lambda row: row["throughput"], default=None)


def reductions(rows: Sequence[Mapping[str, Any]], model: str, gpus: int) -> list[Config]:
    """Every way to sum gradients over all GPUs, with what was fastest on one.

    Hierarchical copy first: it is known to work where NCCL hangs, and so tells how long NCCL may take.
    """
    fastest = best(rows, model, gpus=1)
    if fastest is None or gpus < 2:
        return []
    one = replace(from_json(fastest), gpus=gpus)
    return [replace(one, reduction=reduction) for reduction in REDUCTIONS]


def multiples(rows: Sequence[Mapping[str, Any]], model: str, gpus: int, quick: bool) -> list[Config]:
    """On 2 to all GPUs, with the best way to sum: the curve of the fastest, then the other precisions."""
    fastest = best(rows, model, gpus=gpus)
    if fastest is None:
        return []
    one = from_json(fastest)
    counts = [2**n for n in range(1, 16) if 2**n < gpus] + [gpus]
    found = [replace(one, gpus=count) for count in counts]
    for single in singles([model], quick):
        found.append(replace(single, gpus=gpus, reduction=one.reduction, batch=one.batch))
    done = [from_json(row) for row in rows]
    return [config for n, config in enumerate(found) if config not in found[:n] and config not in done]


def limit_for(config: Config, rows: Sequence[Mapping[str, Any]], most: float) -> float:
    """Seconds after which a configuration counts as hung.

    For several GPUs one and a half times what the same work took on as many with another reduction, else
    twice what it took on fewer, as XLA compiles for each GPU; and no less than 40 s.
    """
    same = (config.model, config.precision, config.xla)
    took = [
        row for row in rows if row["status"] == OK and (row["model"], row["precision"], row["xla"]) == same
    ]
    if not took or config.gpus < 2:
        return most
    every: list[float] = [row["seconds"] for row in took]
    alike: list[float] = [row["seconds"] for row in took if row["gpus"] == config.gpus]
    if alike:
        return max(40.0, 1.5 * max(alike))  # what took longer than ``most`` has shown that it may
    return min(most, max(40.0, 2.0 * max(every)))


def hung_before(config: Config, rows: Iterable[Mapping[str, Any]]) -> str:
    """The model with which this reduction has hung over as many GPUs; empty for none."""
    hung = (
        row["model"]
        for row in rows
        if row["status"] == HUNG and (row["reduction"], row["gpus"]) == (config.reduction, config.gpus)
    )
    return next(hung, "") if config.gpus > 1 else ""
