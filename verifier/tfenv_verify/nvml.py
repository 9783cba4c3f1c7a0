"""NVIDIA's management library: the GPUs that the driver has, also those that CUDA is not shown."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

LIBRARY = "libnvidia-ml.so.1"
_COMPUTE_MODES = {0: "default", 1: "exclusive", 2: "prohibited", 3: "exclusive process"}
_LINKS = 18  # NVML_NVLINK_MAX_LINKS


class _Memory(ctypes.Structure):
    """nvmlMemory_t, which the call without a version suffix takes in every driver."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def probe(load: Callable[[str], Any] = ctypes.CDLL) -> dict[str, Any]:
    """``count``, ``driver``, ``devices`` and ``trouble``; what a driver does not tell is None or empty.

    Of each device: ``name``, ``memory_bytes``, ``used_bytes``, ``mig``, ``compute_mode``, ``nvlinks``.
    """
    found: dict[str, Any] = {"count": None, "driver": "", "devices": [], "trouble": ""}
    try:
        library = load(LIBRARY)
        status = library.nvmlInit_v2()
        if status:
            found["trouble"] = f"nvmlInit_v2 returned error {status}"
            return found
        try:
            count = ctypes.c_uint(0)
            if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0:
                found["count"] = count.value
            found["driver"] = _text(library, "nvmlSystemGetDriverVersion")
            found["devices"] = [_device(library, index) for index in range(found["count"] or 0)]
        finally:
            library.nvmlShutdown()
    except (OSError, AttributeError) as error:
        found["trouble"] = str(error)
    return found


def _device(library: Any, index: int) -> dict[str, Any]:
    handle, memory = ctypes.c_void_p(), _Memory()
    if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
        return {}
    known = library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
    mode = _number(library, "nvmlDeviceGetComputeMode", handle)
    return {
        "name": _text(library, "nvmlDeviceGetName", handle),
        "memory_bytes": int(memory.total) if known else None,
        "used_bytes": int(memory.used) if known else None,
        "mig": _mig(library, handle),
        "compute_mode": "" if mode is None else _COMPUTE_MODES.get(mode, str(mode)),
        "nvlinks": sum(_number(library, "nvmlDeviceGetNvLinkState", handle, n) == 1 for n in range(_LINKS)),
    }


def _mig(library: Any, handle: Any) -> bool | None:
    current, pending = ctypes.c_uint(0), ctypes.c_uint(0)
    call = getattr(library, "nvmlDeviceGetMigMode", None)  # from driver 450 on
    if call is None or call(handle, ctypes.byref(current), ctypes.byref(pending)) != 0:
        return None
    return current.value == 1


def _number(library: Any, name: str, *arguments: Any) -> int | None:
    value, call = ctypes.c_uint(0), getattr(library, name, None)
    if call is None or call(*arguments, ctypes.byref(value)) != 0:
        return None
    return value.value


def _text(library: Any, name: str, *arguments: Any) -> str:
    text = ctypes.create_string_buffer(96)
    status = getattr(library, name)(*arguments, text, 96)
    return text.value.decode("utf-8", "replace") if status == 0 else ""
