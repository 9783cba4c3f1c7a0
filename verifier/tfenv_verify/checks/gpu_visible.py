"""TensorFlow sees every GPU that the driver sees, and computes on it."""

from __future__ import annotations

import os
from typing import Any

from ..context import Context
from ..gpu import BROKEN, Gpu
from ..protocol import Report
from ..stderr_tee import stderr_copied
from ._loaded import compare_loaded

_COMPLAINTS = (
    "Could not find cuda drivers",
    "Cannot dlopen some GPU libraries",
    "Could not load dynamic library",
    "Skipping registering GPU devices",
    "Ignoring visible gpu device",
    "failed call to cuInit",
    "kernel driver does not appear to be running",
    "kernel version",
    "libcuda",
)


def check(context: Context, report: Report) -> None:
    """TensorFlow sees every GPU that the driver sees, and computes on it."""
    if context.gpu.state == BROKEN:
        driver_trouble(context.gpu, report)
        return
    # The reason why TensorFlow takes no GPU is an INFO or WARNING line of its C++ code.
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    with stderr_copied() as log:
        import tensorflow as tf

        devices = [device.name for device in tf.config.list_physical_devices("GPU")]
        where, value = product(tf) if devices else ("", 0.0)
    report.facts["tensorflow_gpus"] = devices
    if not compare_loaded(context.declared, report) and devices:
        (report.info if context.declared.foreign else report.error)(
            "TensorFlow uses a GPU, but no CUDA library is in the process: its CUDA is linked in",
            remedy="install TensorFlow's own wheel: rebuild the image from its lock",
        )
    judge(context.gpu, devices, where, value, log.lines_with(*_COMPLAINTS), report)


def product(tf: Any) -> tuple[str, float]:
    """Where a matrix product was computed, and one element of it (32.0)."""
    with tf.device("/GPU:0"):
        ones = tf.ones((32, 32))
        result = tf.linalg.matmul(ones, ones)
    return str(result.device), float(result.numpy()[0, 0])


def judge(
    driver: Gpu,
    devices: list[str],
    where: str,
    value: float,
    complaints: list[str],
    report: Report,
) -> None:
    """Every GPU of the driver is one of TensorFlow, and a product was really computed there."""
    evidence = "\n".join(complaints)
    if len(devices) < driver.count:
        report.error(
            f"the driver sees {driver.count} GPU(s), TensorFlow sees {len(devices)}",
            evidence,
            "the lines in the evidence name the library or the reason; the check libraries says "
            "where each one is looked for"
            if complaints
            else "the check libraries says which CUDA library is missing",
        )
    if devices and "GPU" not in where:
        report.error(f"a matrix product was computed on {where!r}, not on a GPU", evidence)
    elif devices and value != 32.0:
        report.error(f"a matrix product of ones on the GPU gives {value}, not 32.0")


def driver_trouble(driver: Gpu, report: Report) -> None:
    """A driver that is there and gives no GPU: say what it says."""
    if not driver.library:
        report.error(
            "GPU device nodes are there, but libcuda.so.1 is not usable",
            driver.trouble,
            "docker run --gpus all with NVIDIA_DRIVER_CAPABILITIES=compute,utility, and the "
            "NVIDIA Container Toolkit on the host",
        )
        return
    remedies = {
        100: "docker run --gpus all; look at nvidia-smi on the host",
        802: "start nvidia-fabricmanager on the host (GPUs behind an NVSwitch need it)",
        803: "the driver's kernel module and libcuda.so.1 differ: reboot the host after its update,"
        " and remove cuda-compat from the image",
        804: "this GPU has no forward compatibility: remove cuda-compat, or update the driver",
        999: "reload the module on the host (nvidia-smi; modprobe nvidia_uvm), then try again",
    }
    report.error(
        f"the GPU driver answers CUDA error {driver.error} and gives {driver.count} GPUs",
        "\n".join(filter(None, (driver.kernel, driver.trouble))),
        remedies.get(driver.error, "look at nvidia-smi on the host"),
    )
