"""Facts of a container in which all is well, and parts of others."""

from __future__ import annotations

from typing import Any

READY: dict[str, Any] = {
    "nodes": {"/dev/nvidia0": "ok", "/dev/nvidiactl": "ok", "/dev/nvidia-uvm": "ok"},
    "gpu_nodes": 1,
    "module": "535.183.01",
    "bus": 1,
    "injected": [
        "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01",
        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.183.01",
    ],
    "libraries": [
        {
            "path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
            "end": "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01",
            "version": "535.183.01",
        }
    ],
    "driver": {
        "cuda": {"version": "12.2", "error": 0, "count": 1, "names": ["NVIDIA GeForce RTX 4090"]},
        "nvml": {"error": 0, "count": 1, "driver": "535.183.01"},
        "files": ["/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01"],
    },
    "env": {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
    "cuda": {"base": [], "wheels": ["12"]},
    "packages": {"tensorflow": "2.15.1"},
    "user": {"uid": 1000, "named": True},
    "home": "/home/tfenv",
    "home_writable": True,
    "cache_writable": True,
    "tmp_writable": True,
    "shm_mb": 2000,
    "smi": "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1)",
    "python": "3.11",
    "machine": "x86_64",
    "musl": False,
    "wsl": False,
    "singularity": False,
}
NO_CUDA = {
    "cuda": {"missing": "libcuda.so.1: cannot open"},
    "nvml": {"missing": "libnvidia-ml.so.1"},
    "files": [],
}
NOTHING = {"nodes": {}, "gpu_nodes": 0, "injected": [], "libraries": [], "driver": NO_CUDA, "smi": "missing"}


def error(number: int, **more: Any) -> dict[str, Any]:
    return {
        "driver": {
            "cuda": {"version": "12.2", "error": number, "count": 0},
            "nvml": {"error": 0},
            "files": [],
            **more,
        }
    }


def library(end: str, version: str) -> dict[str, str]:
    return {"path": end.rsplit(".so", 1)[0] + ".so.1", "end": end, "version": version}
