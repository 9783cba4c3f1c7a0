"""Ask CUDA and NVML, in a process of its own: a broken driver can crash or hang. Prints one JSON object."""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any, Callable, Dict, List


def ask(load: Callable[[str], Any] = ctypes.CDLL) -> Dict[str, Any]:
    """What both say: error numbers, versions, devices, and which files were loaded for it."""
    found: Dict[str, Any] = {"nvml": _nvml(load), "cuda": _cuda(load)}
    found["files"] = _files()
    return found


def _cuda(load: Callable[[str], Any]) -> Dict[str, Any]:
    try:
        library = load("libcuda.so.1")
    except OSError as error:
        return {"missing": str(error)}
    number, count = ctypes.c_int(0), ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(number))
    said: Dict[str, Any] = {"version": "%d.%d" % (number.value // 1000, number.value % 1000 // 10)}
    said["error"] = int(library.cuInit(0))
    if said["error"] == 0:
        said["error"] = int(library.cuDeviceGetCount(ctypes.byref(count)))
    said["count"] = count.value if said["error"] == 0 else 0
    names: List[str] = []
    for ordinal in range(said["count"]):
        name, handle = ctypes.create_string_buffer(256), ctypes.c_int(0)
        library.cuDeviceGet(ctypes.byref(handle), ordinal)
        library.cuDeviceGetName(name, len(name), handle)
        names.append(name.value.decode("utf-8", "replace"))
    said["names"] = names
    return said


def _nvml(load: Callable[[str], Any]) -> Dict[str, Any]:
    try:
        library = load("libnvidia-ml.so.1")
    except OSError as error:
        return {"missing": str(error)}
    said: Dict[str, Any] = {"error": int(library.nvmlInit_v2())}
    if said["error"] == 0:
        count, text = ctypes.c_uint(0), ctypes.create_string_buffer(96)
        library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        library.nvmlSystemGetDriverVersion(text, 96)
        said.update(count=count.value, driver=text.value.decode("utf-8", "replace"))
        library.nvmlShutdown()
    return said


def _files() -> List[str]:
    found = []
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                path = line.rstrip("\n").partition("/")
                name = path[1] + path[2]
                if ("libcuda.so" in name or "libnvidia-ml.so" in name) and name not in found:
                    found.append(name)
    except OSError:
        pass
    return found


if __name__ == "__main__":
    json.dump(ask(), sys.stdout)
