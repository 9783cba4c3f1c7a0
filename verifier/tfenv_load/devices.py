"""The GPUs as TensorFlow sees them, and how it is told to use them. For development the CPU may stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Devices:
    """Device strings, and what is known of the GPUs: name and compute capability."""

    names: tuple[str, ...]
    about: tuple[dict[str, Any], ...]
    is_gpu: bool


class NoGpuError(Exception):
    """TensorFlow sees no GPU."""


def take(tf: Any, count: int = 0, allow_cpu: bool = False) -> Devices:
    """The first ``count`` GPUs (0: all), with memory taken as needed.

    Raises:
        NoGpuError: there are fewer.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus and allow_cpu:
        number = max(1, count)
        cpu = tf.config.list_physical_devices("CPU")[0]
        make = tf.config.LogicalDeviceConfiguration
        tf.config.set_logical_device_configuration(cpu, [make() for _ in range(number)])
        names = tuple("/CPU:{}".format(n) for n in range(number))
        return Devices(names, tuple({"name": "CPU", "capability": [0, 0]} for _ in names), False)
    if len(gpus) < max(1, count):
        raise NoGpuError("TensorFlow sees {} GPUs".format(len(gpus)))
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    chosen = gpus[: count or len(gpus)]
    about = []
    for gpu in chosen:
        details = tf.config.experimental.get_device_details(gpu)
        capability = details.get("compute_capability") or (0, 0)
        about.append({"name": details.get("device_name", ""), "capability": list(capability)})
    return Devices(tuple("/GPU:{}".format(n) for n in range(len(chosen))), tuple(about), True)
