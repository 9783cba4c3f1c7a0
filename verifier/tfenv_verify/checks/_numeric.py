"""What the GPU checks share: one operation on both devices, and the distance of the results."""

from __future__ import annotations

import time
from typing import Any, Callable


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


def on_both(tf: Any, compute: Callable[[], Any]) -> tuple[float, float, str]:
    """Distance of GPU and CPU results, seconds of the first call on the GPU, and its device."""
    started = time.monotonic()
    with tf.device("/GPU:0"):
        got = compute()
        values = flat(got)
    seconds = time.monotonic() - started
    with tf.device("/CPU:0"):
        expected = flat(compute())
    return distance(values, expected), round(seconds, 3), str(got.device)


def grow_memory(tf: Any) -> None:
    """Take GPU memory as needed: the GPU may be shared with what else runs on this host."""
    for device in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(device, True)


def some(tf: Any, *shape: int) -> Any:
    """Numbers between 0 and 1 that are the same each time, on any device."""
    count = 1
    for side in shape:
        count *= side
    return tf.reshape(tf.constant([(n * 37 % 101) / 101.0 for n in range(count)]), shape)
