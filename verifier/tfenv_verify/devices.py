"""The devices that GPU checks compute on: all GPUs, or in the project's own tests logical CPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .context import Context

LOGICAL_MEGABYTES = 2048


@dataclass(frozen=True)
class Devices:
    """Names for ``tf.device``, and the kind that the device string of a result has to name."""

    names: tuple[str, ...]
    kind: str
    logical: bool = False

    @property
    def is_gpu(self) -> bool:
        """Whether these are GPUs: a CPU stands in only in tests."""
        return self.kind == "GPU"


def take(tf: Any, context: Context, logical: int = 0) -> Devices:
    """The devices, with GPU memory taken as needed: the GPU may be shared with others of this host.

    Args:
        logical: split the first GPU into so many instead. Before anything is computed.
    """
    configuration = tf.config.LogicalDeviceConfiguration
    if context.on_cpu:
        cpu = tf.config.list_physical_devices("CPU")[0]
        count = logical or context.on_cpu
        parts = [configuration() for _ in range(count)]
        tf.config.set_logical_device_configuration(cpu, parts)
        return Devices(tuple(f"/CPU:{n}" for n in range(count)), "CPU", logical > 0)
    gpus = tf.config.list_physical_devices("GPU")
    if logical and gpus:
        parts = [configuration(memory_limit=LOGICAL_MEGABYTES) for _ in range(logical)]
        tf.config.set_logical_device_configuration(gpus[0], parts)
        return Devices(tuple(f"/GPU:{n}" for n in range(logical)), "GPU", logical=True)
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    return Devices(tuple(f"/GPU:{n}" for n in range(len(gpus))), "GPU")


def compiled(tf: Any, function: Any) -> Any:
    """A function that XLA compiles."""
    try:
        return tf.function(function, jit_compile=True)
    except TypeError:  # TensorFlow 2.4
        return tf.function(function, experimental_compile=True)


def capability(context: Context) -> tuple[int, ...]:
    """The compute capability of the first GPU; empty if it is not known."""
    told = str(context.gpu.devices[0].get("compute_capability", "")) if context.gpu.devices else ""
    return tuple(int(part) for part in told.split(".")) if told else ()
