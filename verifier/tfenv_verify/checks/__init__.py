"""The table of checks: one function in one file each, taking (Context, Report)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from ..context import Context
from ..protocol import ONE_GPU, Report
from . import (
    cudnn_convolution,
    environment,
    gpu_kernels,
    gpu_visible,
    hygiene,
    libraries,
    mixed_precision,
    multi_gpu,
    nccl,
    pip_check,
    ptxas,
    pyc,
    record,
    second_cuda,
    tensorflow,
    xla,
)

SUITES = ("smoke", "full")


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

# Kernels without machine code for the GPU are compiled by the driver at first use. Measured with
# TensorFlow 2.15 on compute capability 9.0, cold: gpu_kernels 50 s, cudnn_convolution 16 s,
# mixed_precision 12 s, gpu_visible 8 s, xla 5 s, multi_gpu 4 s, all others < 5 s each. The limits
# leave room for a slow disk, a slow CPU, and a driver that starts cold.
CHECKS: tuple[Check, ...] = (
    Check("tensorflow", tensorflow.check, "any", 180, _BOTH),
    Check("libraries", libraries.check, "any", 180, _BOTH),
    Check("nccl", nccl.check, "any", 120, _BOTH),
    Check("second_cuda", second_cuda.check, "any", 60, _BOTH),
    Check("ptxas", ptxas.check, "any", 60, _BOTH),
    Check("environment", environment.check, "any", 30, _BOTH),
    Check("record", record.check, "any", 300, _FULL),
    Check("pyc", pyc.check, "any", 180, _FULL),
    Check("hygiene", hygiene.check, "any", 60, _FULL),
    Check("pip_check", pip_check.check, "any", 120, _FULL),
    Check("gpu_visible", gpu_visible.check, "gpu", 180, _BOTH),
    Check("gpu_kernels", gpu_kernels.check, "gpu", 600, _BOTH),
    Check("cudnn_convolution", cudnn_convolution.check, "gpu", 300, _FULL),
    Check("mixed_precision", mixed_precision.check, "gpu", 300, _FULL),
    Check("multi_gpu", multi_gpu.check, "gpu", 300, _FULL, accepted=(ONE_GPU,)),
    Check("xla", xla.check, "gpu", 300, _FULL),
)
