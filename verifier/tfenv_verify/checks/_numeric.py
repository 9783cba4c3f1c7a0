"""What the GPU checks share: numbers to compute with, and the distance of two results."""

from __future__ import annotations

import time
from typing import Any, Callable

#: The largest difference that is allowed, relative to the largest expected magnitude, by what is computed
#: in: float32 products in full, in TF32 (10 bits of mantissa, the default since Ampere), and so on.
TOLERANCES = {"float32": 1e-4, "tf32": 5e-3, "float16": 1e-2, "bfloat16": 5e-2}


def flat(tensor: Any) -> list[float]:
    """All elements of a tensor as floats."""
    return [float(value) for value in tensor.numpy().reshape(-1).tolist()]


def distance(got: list[float], expected: list[float]) -> float:
    """The largest difference, relative to the largest expected magnitude; inf for NaN or sizes."""
    if len(got) != len(expected) or not expected:
        return float("inf")
    differences = list(map(lambda a, b: abs(a - b), got, expected))
    if any(value != value for value in differences):
        return float("inf")
    return max(differences) / max(1e-6, max(abs(value) for value in expected))


def on_both(tf: Any, compute: Callable[[], Any], device: str = "/GPU:0") -> dict[str, Any]:
    """Distance of a device's result from the CPU's, seconds of its first and second call, where it was."""
    seconds = []
    for _ in range(2):
        started = time.monotonic()
        with tf.device(device):
            got = compute()
            values = flat(got)
        seconds.append(round(time.monotonic() - started, 4))
    with tf.device("/CPU:0"):
        expected = flat(compute())
    return {
        "distance": distance(values, expected),
        "first_seconds": seconds[0],
        "second_seconds": seconds[1],
        "device": str(got.device),
    }


def some(tf: Any, *shape: int, dtype: str = "float32", low: float = 0.0) -> Any:
    """Numbers from ``low`` to ``low + 1`` that are the same each time, on any device."""
    count = 1
    for side in shape:
        count *= side
    # 8191 is prime, so that no period of the numbers falls together with a side.
    numbers = [(n * 2741 % 8191) / 8191.0 + low for n in range(count)]
    return tf.cast(tf.reshape(tf.constant(numbers, tf.float64), shape), dtype)
