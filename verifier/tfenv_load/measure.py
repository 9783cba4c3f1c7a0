"""One configuration, in a process of its own: the first step, then repeats of many steps."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from .devices import take
from .plan import FAILED, OK, Config

_WARM_STEPS = 5


def run(config: Config, *, repeats: int, seconds: float, allow_cpu: bool = False) -> dict[str, Any]:
    """The figures of a configuration.

    Args:
        repeats: how many; seconds: of each, about.

    Raises:
        NoGpuError: fewer GPUs than it asks for.
    """
    began = time.monotonic()
    import tensorflow as tf

    from .training import Training

    devices = take(tf, config.gpus, allow_cpu)
    _phase("making the variables and the data")
    training = Training(tf, config, devices)
    prepared = time.monotonic()
    _phase("the first step")
    training.step()
    loss = training.wait()
    first = time.monotonic() - prepared
    _phase("the next steps")
    for _ in range(_WARM_STEPS):
        training.step()
    training.wait()
    each = _timed(training, 3) / 3
    steps = max(3, math.ceil(seconds / each))
    _phase("{} repeats of {} steps".format(repeats, steps))
    times = []
    for _ in range(repeats):
        times.append(_timed(training, steps) / steps)
    last = training.wait()
    speeds = sorted(training.items / one for one in times)
    finite = math.isfinite(loss) and math.isfinite(last)
    return {
        "status": OK if finite else FAILED,
        "why": "" if finite else "the loss went from {} to {}".format(loss, last),
        "tensorflow": tf.__version__,
        "devices": list(devices.about),
        "unit": training.model.unit,
        "throughput": round(median(speeds), 2),
        "low": round(speeds[0], 2),
        "high": round(speeds[-1], 2),
        "repeats": repeats,
        "steps": steps,
        "step_ms": round(1000 * median(sorted(times)), 3),
        "first_step": round(first, 2),
        "start": round(prepared - began, 2),
        "memory": _memory(tf, config.gpus if devices.is_gpu else 0),
        "loss": [loss, last],
    }


def median(ordered: list[float]) -> float:
    """The middle one of sorted numbers, or the mean of the two."""
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _timed(training: Any, steps: int) -> float:
    began = time.monotonic()
    for _ in range(steps):
        training.step()
    training.wait()
    return time.monotonic() - began


def _memory(tf: Any, gpus: int) -> int | None:
    """The most bytes that TensorFlow has held on one of the GPUs; None where it does not tell (2.4)."""
    ask = getattr(tf.config.experimental, "get_memory_info", None)
    if ask is None or not gpus:
        return None
    return max(int(ask("GPU:{}".format(n))["peak"]) for n in range(gpus))


def _phase(what: str) -> None:
    """Say where it is, so that a hang shows where it hung."""
    sys.stderr.write("phase: {}\n".format(what))
    sys.stderr.flush()
