"""What is looked at in here: files, variables, libraries, the driver."""

from __future__ import annotations

import json
import platform
import re
import sys
from typing import Any, Dict, List, Mapping, Optional

from .sources import Sources

_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib/wsl/lib",
    "/.singularity.d/libs",
)
#: Variables that change what is found.
_NAMES = (
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "CUDA_CACHE_PATH",
    "CUDA_CACHE_DISABLE",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "CONDA_PREFIX",
)
_VERSION = re.compile(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$")
_CUDART = re.compile(r"libcudart\.so\.(\d+(?:\.\d+)*)$")


def look(sources: Sources, driver_program: str) -> Dict[str, Any]:
    """All facts, as plain data.

    Args:
        driver_program: source of ``driver``, which is run as ``python -c``.
    """
    env = sources.env
    nodes = [path for pattern in ("/dev/nvidia*", "/dev/dxg") for path in sources.matching(pattern)]
    nodes = [path for path in nodes if path != "/dev/nvidia-caps"]
    version = sources.read("/proc/driver/nvidia/version") or ""
    running = re.search(r"Kernel Module[^\n]*?\s(\d{3}\.\d+(?:\.\d+)?)\b", version)
    mounts = sources.read("/proc/mounts") or ""
    return {
        "nodes": {path: sources.opens(path) for path in nodes},
        "gpu_nodes": sum(bool(re.match(r"/dev/nvidia\d+$", path)) for path in nodes),
        "module": running.group(1) if running else "",
        "bus": _gpus_on_bus(sources),
        "injected": sorted(set(re.findall(r" (/\S*lib(?:cuda|nvidia-ml)\.so\S*) ", mounts))),
        "libraries": _libraries(sources, env),
        "driver": _driver(sources, driver_program),
        "env": {name: env[name] for name in _NAMES if name in env},
        "cuda": _cudas(sources),
        "packages": _packages(sources),
        "user": sources.user(),
        "home": env.get("HOME", ""),
        "home_writable": sources.writable(env.get("HOME") or "/"),
        "cache_writable": sources.writable(env.get("CUDA_CACHE_PATH") or env.get("HOME") or "/"),
        "tmp_writable": sources.writable(env.get("TMPDIR") or "/tmp"),
        "shm_mb": sources.space("/dev/shm"),
        "smi": _smi(sources),
        "python": "%d.%d" % sys.version_info[:2],
        "machine": platform.machine(),
        "musl": bool(sources.matching("/lib/ld-musl-*")),
        "wsl": "microsoft" in (sources.read("/proc/version") or "").lower() or "/dev/dxg" in nodes,
        "singularity": bool(env.get("SINGULARITY_NAME") or env.get("APPTAINER_NAME")),
    }


def _driver(sources: Sources, program: str) -> Dict[str, Any]:
    status, out, _ = sources.run([sys.executable, "-c", program], 30)
    if status == 124:
        return {"hangs": True}
    try:
        found = json.loads(out)
    except ValueError:
        return {"crashed": status}
    return found if isinstance(found, dict) else {"crashed": status}


def _libraries(sources: Sources, env: Mapping[str, str]) -> List[Dict[str, str]]:
    """Every libcuda and libnvidia-ml in the usual places and on LD_LIBRARY_PATH, with its version."""
    folders = [folder for folder in env.get("LD_LIBRARY_PATH", "").split(":") if folder]
    found: Dict[str, Dict[str, str]] = {}
    for folder in (*folders, *_LIBRARY_FOLDERS):
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            path = f"{folder}/{name}"
            end = sources.end(path)
            if end and end not in found:
                version = _VERSION.search(end)
                found[end] = {"path": path, "end": end, "version": version.group(1) if version else ""}
    return list(found.values())


def _gpus_on_bus(sources: Sources) -> Optional[int]:
    """NVIDIA GPUs on the host's PCI bus, which a container sees too; None where it does not."""
    devices = sources.matching("/sys/bus/pci/devices/*")
    if not devices:
        return None
    ours = [path for path in devices if (sources.read(f"{path}/vendor") or "").strip() == "0x10de"]
    return sum((sources.read(f"{path}/class") or "").startswith(("0x0300", "0x0302")) for path in ours)


def _cudas(sources: Sources) -> Dict[str, List[str]]:
    """Versions of libcudart by where they come from."""
    system = sources.matching("/usr/local/cuda*/lib64/libcudart.so.*")
    system += sources.matching("/usr/local/cuda*/targets/*/lib/libcudart.so.*")
    wheels = [
        path
        for folder in sources.paths()
        for path in sources.matching(f"{folder}/nvidia/cuda_runtime/lib/libcudart.so.*")
    ]
    return {
        "base": sorted({m.group(1) for path in system for m in [_CUDART.search(path)] if m}),
        "wheels": sorted({m.group(1) for path in wheels for m in [_CUDART.search(path)] if m}),
    }


def _packages(sources: Sources) -> Dict[str, str]:
    """Installed TensorFlows and what they need of NVIDIA's, by name."""
    found: Dict[str, str] = {}
    pattern = re.compile(r"/((?:tensorflow|tf_nightly|intel_tensorflow|nvidia_)\w*)-([^/]+)\.dist-info$")
    for folder in sources.paths():
        for path in sources.matching(f"{folder}/*.dist-info"):
            match = pattern.search(path)
            if match:
                found.setdefault(match.group(1).replace("_", "-"), match.group(2))
    return found


def _smi(sources: Sources) -> str:
    status, out, err = sources.run(["nvidia-smi", "-L"], 20)
    if status == 127:
        return "missing"
    if status == 124:
        return "hangs"
    return (out + err).strip()[:2000]
