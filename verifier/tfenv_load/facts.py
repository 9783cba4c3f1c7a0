"""What of machine and image the figures depend on, and nothing that tells whose it is."""

from __future__ import annotations

import hashlib
import os
import platform
from typing import Any

from tfenv_verify.runner import suite_command

_STEERS = (
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_TF32_OVERRIDE",
    "TF_DETERMINISTIC_OPS",
    "TF_USE_CUBLASLT",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
)


def here() -> dict[str, Any]:
    """This program, kernel, CPU, Python, and what of the environment steers the GPUs' libraries."""
    return {
        "program": program(suite_command()[-1]),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu_model(_read("/proc/cpuinfo")),
        "cpus": os.cpu_count() or 0,
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name in _STEERS or name.startswith(("NCCL_", "TF_CUDNN_", "TF_ENABLE_", "TF_GPU_"))
        },
    }


def program(path: str) -> str:
    """The sha256 of the zipapp that runs; empty when run from a folder."""
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read()).hexdigest()
    except OSError:
        return ""


def cpu_model(text: str) -> str:
    """The first model name in /proc/cpuinfo."""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
