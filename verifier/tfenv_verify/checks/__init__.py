"""The table of checks: one function in one file each, taking (Context, Report)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from ..context import Context
from ..protocol import ONE_GPU, Report
from . import (
    cudnn,
    determinism,
    environment,
    gpu_kernels,
    gpu_visible,
    hygiene,
    input_pipeline,
    libraries,
    memory,
    mixed_precision,
    multi_gpu,
    multi_worker,
    nccl,
    pip_check,
    profiler,
    ptxas,
    pyc,
    record,
    saved_model,
    second_cuda,
    tensorboard,
    tensorflow,
    tf_function,
    xla,
)

SUITES = ("smoke", "full", "workers")


@dataclass(frozen=True)
class Check:
    """One row of the table.

    Args:
        needs: ``any`` or ``gpu``.
        timeout: seconds, enforced by a kill.
        accepted: the reasons for which it may be not run in an image that passes all the same.
    """

    name: str
    function: Callable[[Context, Report], None]
    needs: str
    timeout: float
    suites: tuple[str, ...]
    accepted: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The row without its function."""
        return {
            "name": self.name,
            "needs": self.needs,
            "timeout": self.timeout,
            "suites": list(self.suites),
            "accepted": list(self.accepted),
            "what": (self.function.__doc__ or "").split("\n")[0],
        }


_BOTH = ("smoke", "full")
_FULL = ("full",)
_ALL = SUITES
_WORKERS = ("workers",)

# Kernels without machine code for the GPU are compiled by the driver at first use. Measured with
# TensorFlow 2.15 on compute capability 9.0, cold: gpu_kernels 50 s, a first convolution 13 s, a first
# training step 18 s; all others take a few seconds each. The limits leave room for a slow disk, a slow CPU
# and a driver that starts cold; what the suite may take as a whole is main.SUITE_SECONDS.
CHECKS: tuple[Check, ...] = (
    Check("tensorflow", tensorflow.check, "any", 180, _BOTH),
    Check("libraries", libraries.check, "any", 180, _BOTH),
    Check("nccl", nccl.check, "any", 120, _BOTH),
    Check("second_cuda", second_cuda.check, "any", 60, _BOTH),
    Check("ptxas", ptxas.check, "any", 60, _BOTH),
    Check("environment", environment.check, "any", 30, _BOTH),
    Check("gpu_visible", gpu_visible.check, "gpu", 120, _ALL),
    Check("gpu_kernels", gpu_kernels.check, "gpu", 240, _BOTH),
    Check("cudnn", cudnn.check, "gpu", 150, _FULL),
    Check("multi_gpu", multi_gpu.check, "gpu", 4 * multi_gpu.SECONDS + 30, _FULL, accepted=(ONE_GPU,)),
    Check("multi_worker", multi_worker.check, "gpu", multi_worker.MOST_SECONDS, _WORKERS),
    Check("mixed_precision", mixed_precision.check, "gpu", 150, _FULL),
    Check("xla", xla.check, "gpu", 120, _FULL),
    Check("tf_function", tf_function.check, "gpu", 90, _FULL),
    Check("determinism", determinism.check, "gpu", 120, _FULL),
    Check("memory", memory.check, "gpu", 150, _FULL),
    Check("profiler", profiler.check, "gpu", 90, _FULL),
    Check("saved_model", saved_model.check, "gpu", 120, _FULL),
    Check("input_pipeline", input_pipeline.check, "gpu", 90, _FULL),
    Check("record", record.check, "any", 300, _FULL),
    Check("pyc", pyc.check, "any", 180, _FULL),
    Check("hygiene", hygiene.check, "any", 60, _FULL),
    # Where they are in the lock and not in the image, that is an error and not a reason.
    Check("pip_check", pip_check.check, "any", 120, _FULL, accepted=(pip_check.ABSENT,)),
    Check("tensorboard", tensorboard.check, "any", 180, _FULL, accepted=(tensorboard.ABSENT,)),
)

#: Parts of checks that run in a process of their own: by name, one function taking (Context, arguments).
PARTS: dict[str, Callable[[Context, dict[str, Any]], dict[str, Any]]] = {
    "memory": memory.part,
    "multi_gpu": multi_gpu.part,
    "multi_worker": multi_worker.part,
}
