"""GPU memory: taken as needed, within a limit, and running out of it is an error that one survives."""

from __future__ import annotations

from typing import Any

from .. import nvml
from ..context import Context
from ..parts import run_part
from ..protocol import NotRunError, Report, say

MEGABYTE = 1 << 20
LIMIT = 1024  # megabytes
_SECONDS = 60.0
_GROWN = 0.5  # of the GPU's memory; without growth TensorFlow takes nearly all of it


def check(context: Context, report: Report) -> None:
    """Memory grows as needed, a limit is obeyed, and running out of memory is survived."""
    if context.on_cpu:
        raise NotRunError("a CPU has no memory of its own to limit")
    for name, judged in (("growth", judge_growth), ("limit", judge_limit)):
        say(f"memory: {name}")
        found = run_part(context, "memory", {"part": name}, _SECONDS)
        report.facts[name] = {key: value for key, value in found.items() if key != "tail"}
        if "failed" in found:
            report.error(
                f"a process that tries the memory's {name} {found['failed']}",
                found.get("tail", ""),
                "the last lines of its output, in the evidence, say where it was",
            )
        else:
            judged(found, report)


def part(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    """Try one of both, in a process where TensorFlow has not started its devices."""
    import tensorflow as tf

    return growth(tf) if arguments["part"] == "growth" else limited(tf)


def growth(tf: Any) -> dict[str, Any]:
    """Bytes in use on the first GPU before and while TensorFlow holds a little; None if not told."""
    before = nvml.probe()
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    with tf.device("/GPU:0"):
        kept = tf.ones((1024, 1024))
        total = float(tf.reduce_sum(kept))
    after = nvml.probe()
    return {
        "sum": total,
        "before": [device.get("used_bytes") for device in before["devices"]],
        "after": [device.get("used_bytes") for device in after["devices"]],
        "memory": [device.get("memory_bytes") for device in after["devices"]],
        "trouble": after["trouble"],
    }


def limited(tf: Any) -> dict[str, Any]:
    """What becomes of half of the limit, of three times the limit, and of a little after that."""
    gpu = tf.config.list_physical_devices("GPU")[0]
    tf.config.set_visible_devices([gpu], "GPU")  # of the others it would take all memory
    parts = [tf.config.LogicalDeviceConfiguration(memory_limit=LIMIT)]
    tf.config.set_logical_device_configuration(gpu, parts)
    return {"half": _take(tf, LIMIT // 2), "thrice": _take(tf, LIMIT * 3), "little": _take(tf, 1)}


def _take(tf: Any, megabytes: int) -> str:
    """``ok``, or the name of the error."""
    try:
        with tf.device("/GPU:0"):
            kept = tf.ones((megabytes, MEGABYTE // 4))
            correct = float(kept[-1, -1]) == 1.0
        return "ok" if correct else "wrong"
    except Exception as error:
        return type(error).__name__


def judge_growth(found: dict[str, Any], report: Report) -> None:
    """TensorFlow does not take the whole GPU when it was told to take what it needs."""
    told = list(map(lambda *row: row, found["before"], found["after"], found["memory"]))
    known = [row for row in told if None not in row]
    if not known:
        report.info(
            "whether memory grows as needed cannot be told: NVML does not tell what is in use",
            str(found["trouble"]),
        )
    for number, (before, after, memory) in enumerate(known):
        if after - before > _GROWN * memory:
            report.error(
                f"with memory growth on, {(after - before) / MEGABYTE:.0f} MiB of GPU {number} went for a "
                "tensor of 4 MiB",
                f"in use before {before}, then {after} of {memory} bytes",
                "if no other process took it meanwhile: look at TF_FORCE_GPU_ALLOW_GROWTH and "
                "TF_GPU_ALLOCATOR",
            )


def judge_limit(found: dict[str, Any], report: Report) -> None:
    """Within the limit it works; above it ResourceExhaustedError; and the process goes on."""
    evidence = ", ".join(f"{name}: {found[name]}" for name in ("half", "thrice", "little"))
    if found["half"] != "ok":
        report.error(
            f"{LIMIT // 2} MiB cannot be had within a limit of {LIMIT} MiB: {found['half']}",
            evidence,
            "other processes hold the GPU's memory: look at nvidia-smi",
        )
    if found["thrice"] == "ok":
        report.error(
            f"a limit of {LIMIT} MiB is not obeyed: {LIMIT * 3} MiB were given",
            evidence,
            "look at TF_GPU_ALLOCATOR: cuda_malloc_async takes no limit in some releases",
        )
    elif found["thrice"] != "ResourceExhaustedError":
        report.error(
            f"running out of memory raises {found['thrice']}, not ResourceExhaustedError",
            evidence,
            "compare TensorFlow with the lock",
        )
    if found["little"] != "ok":
        report.error(
            f"after it ran out of memory, the process cannot compute any more: {found['little']}",
            evidence,
            "look at TF_GPU_ALLOCATOR",
        )
