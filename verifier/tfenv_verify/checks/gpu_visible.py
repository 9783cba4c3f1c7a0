"""TensorFlow sees every GPU that the driver sees, and computes on it."""

from __future__ import annotations

import os
from typing import Any

from ..context import Context
from ..gpu import ABSENT, BROKEN, PROBE, Gpu
from ..protocol import Report
from ..stderr_tee import stderr_copied
from ..versions import major_minor
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
    expected(context.gpu, context.expect_gpus, report)
    if context.gpu.state == BROKEN:
        driver_trouble(context.gpu, report)
        return
    if context.gpu.state == ABSENT:
        return  # only started to say that GPUs were expected
    driver(context.gpu, report)
    serves(context.gpu, context.declared.cuda, report)
    # The reason why TensorFlow takes no GPU is an INFO or WARNING line of its C++ code.
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    with stderr_copied() as log:
        import tensorflow as tf

        seen = look(tf)
    report.facts["tensorflow_gpus"] = seen
    if not compare_loaded(context.declared, report) and seen:
        (report.info if context.declared.foreign else report.error)(
            "TensorFlow uses a GPU, but no CUDA library is in the process: its CUDA is linked in",
            remedy="install TensorFlow's own wheel: rebuild the image from its lock",
        )
    judge(context.gpu, seen, log.lines_with(*_COMPLAINTS), report)


def expected(state: Gpu, wanted: int | None, report: Report) -> None:
    """As many GPUs as the user says there are."""
    if wanted is None or wanted == state.count:
        return
    there = state.nvml.get("count")
    report.error(
        f"{wanted} GPU(s) are expected, {state.count} are seen",
        "\n".join(
            filter(
                None,
                (
                    "" if state.visible is None else f"CUDA_VISIBLE_DEVICES={state.visible}",
                    "" if there is None else f"the driver has {there} in this container",
                    state.trouble,
                ),
            )
        ),
        "look at CUDA_VISIBLE_DEVICES"
        if state.visible is not None
        else "docker run --gpus all; look at nvidia-smi on the host",
    )


def driver(state: Gpu, report: Report) -> None:
    """What the driver says of its GPUs, and whether CUDA is given all of them."""
    report.facts["gpus"] = state.told()["devices"]
    report.facts["nvml"] = state.nvml
    named = [str(device.get("name", "")) for device in state.devices]
    mig = any(device.get("mig") for device in state.nvml.get("devices", ())) or any("MIG" in n for n in named)
    there = state.nvml.get("count")
    if there is None:
        told = state.nvml.get("trouble", "") or "it tells no number"
        report.info("NVML does not work here: the GPUs are those of the CUDA driver API", told)
    elif state.visible is not None and there > state.count:
        report.info(
            f"CUDA_VISIBLE_DEVICES={state.visible} shows {state.count} of the driver's {there} GPUs to CUDA"
        )
    elif there != state.count and not mig:
        report.warning(
            f"the driver has {there} GPUs in this container, CUDA sees {state.count}",
            "\n".join(str(device) for device in state.nvml.get("devices", ())),
            "a GPU that CUDA leaves out is in use, lost or in MIG mode: look at nvidia-smi -q on the host",
        )
    if mig:
        report.info("MIG mode is on: CUDA uses the first MIG instance only", "\n".join(named))
    for number, device in enumerate(state.devices):
        mode = device.get("compute_mode", "default")
        if mode == "prohibited":
            report.error(
                f"GPU {number} is in compute mode {mode}: no process can compute on it",
                remedy=f"on the host: nvidia-smi -i {number} -c DEFAULT",
            )
        elif mode != "default":
            report.info(f"GPU {number} is in compute mode {mode}: one process at a time can use it")


def serves(state: Gpu, cuda: str, report: Report) -> None:
    """The driver is new enough for the image's CUDA.

    Within a major version any driver serves, but for PTX of a newer CUDA, which it cannot compile.
    https://docs.nvidia.com/deploy/cuda-compatibility/

    Args:
        cuda: of the image; empty if it is not declared.
    """
    have, need = major_minor(state.cuda), major_minor(cuda)
    if not have or not need:
        return
    if have[0] < need[0]:
        report.error(
            f"the driver serves CUDA up to {state.cuda}; the image has CUDA {cuda}",
            state.kernel,
            "update the driver on the host, or take an older row: `tfenv explain` names those that it serves",
        )
    elif have < need:
        report.info(
            f"the driver is of CUDA {state.cuda}, older than the image's CUDA {cuda}, which it serves too",
            "PTX of a newer CUDA it cannot compile",
        )


def look(tf: Any) -> list[dict[str, Any]]:
    """Each GPU of TensorFlow: what it says of it, where a product was computed, and one element of it."""
    physical = tf.config.list_physical_devices("GPU")
    for device in physical:
        tf.config.experimental.set_memory_growth(device, True)
    seen = []
    for number, device in enumerate(physical):
        details = tf.config.experimental.get_device_details(device)
        where, value = product(tf, number)
        capability = details.get("compute_capability")
        seen.append(
            {
                "name": str(details.get("device_name", "")),
                "compute_capability": "{}.{}".format(*capability) if capability else "",
                "where": where,
                "value": value,
            }
        )
    return seen


def product(tf: Any, number: int) -> tuple[str, float]:
    """Where a matrix product was computed, and one element of it (32.0)."""
    with tf.device(f"/GPU:{number}"):
        ones = tf.ones((32, 32))
        result = tf.linalg.matmul(ones, ones)
    return str(result.device), float(result.numpy()[0, 0])


def judge(state: Gpu, seen: list[dict[str, Any]], complaints: list[str], report: Report) -> None:
    """Every GPU of the driver is one of TensorFlow, and a product was really computed there."""
    evidence = "\n".join(complaints)
    if len(seen) != state.count:
        report.error(
            f"the driver sees {state.count} GPU(s), TensorFlow sees {len(seen)}",
            evidence,
            "the lines in the evidence name the library or the reason; the check libraries says "
            "where each one is looked for"
            if complaints
            else "the check libraries says which CUDA library is missing",
        )
    for number, device in enumerate(seen):
        if not device["where"].endswith(f"GPU:{number}"):
            report.error(
                f"a matrix product for GPU {number} was computed on {device['where']!r}",
                evidence,
                "the operation has no kernel for this GPU: compare its compute capability with the wheel's",
            )
        elif device["value"] != 32.0:
            report.error(
                f"a matrix product of ones on GPU {number} gives {device['value']}, not 32.0",
                remedy="the GPU or its driver computes wrongly: look at nvidia-smi -q and at the host's log",
            )
    have = sorted(str(device.get("compute_capability", "")) for device in state.devices)
    told = sorted(device["compute_capability"] for device in seen)
    if len(have) == len(told) and all(told) and have != told:
        report.error(
            f"CUDA says compute capability {', '.join(have)}, TensorFlow {', '.join(told)}",
            evidence,
            "run without NVIDIA_DISABLE_REQUIRE and other overrides; reboot the host after a driver update",
        )


def driver_trouble(driver: Gpu, report: Report) -> None:
    """A driver that is there and gives no GPU: say what it says."""
    if driver.trouble.startswith(PROBE):
        report.error(
            driver.trouble.partition(":")[0],
            driver.trouble,
            "look at nvidia-smi and at the kernel's log on the host; remove a libcuda.so.1 that the image "
            "brings (a toolkit's stub, cuda-compat)",
        )
        return
    if not driver.library:
        report.error(
            "GPU device nodes are there, but libcuda.so.1 is not usable",
            driver.trouble,
            "docker run --gpus all with NVIDIA_DRIVER_CAPABILITIES=compute,utility, and the "
            "NVIDIA Container Toolkit on the host",
        )
        return
    remedies = {
        34: "this libcuda.so.1 is a toolkit's stub, not a driver: remove it from the image",
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
