"""What the driver and libraries answer to ctypes is changed, or made up where there is no driver."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any, Callable

_MAJOR, _MINOR, _MODE = 75, 76, 20  # CUdevice_attribute
_PROHIBITED = 2
_H200 = {_MAJOR: 9, _MINOR: 0, _MODE: 0}
_MEMORY = 141 << 30


def _set(pointer: Any, value: Any) -> int:
    """Write through ``ctypes.byref(x)``, or into a buffer; 0 for success."""
    (pointer._obj if hasattr(pointer, "_obj") else pointer).value = value
    return 0


def _attribute(real: Any, pointer: Any, which: int, handle: Any, **told: int) -> int:
    names = {_MAJOR: "major", _MINOR: "minor", _MODE: "mode"}
    if names.get(which) in told:
        return _set(pointer, told[names[which]])
    return int(real(pointer, which, handle))


def _one_more(real: Any, pointer: Any) -> int:
    status = int(real(pointer))
    pointer._obj.value += 1
    return status


def _older_cudnn(real: Any) -> int:
    found = int(real())
    return found - 100  # the same major version, one minor version less


def _mig(_real: Any, _handle: Any, current: Any, pending: Any) -> int:
    return _set(current, 1) or _set(pending, 1)


#: By seed: library, function, and what is called instead with the real function and its arguments.
CHANGES: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "old_driver": ("libcuda", "cuDriverGetVersion", lambda _real, pointer: _set(pointer, 10020)),
    "driver_mismatch": ("libcuda", "cuInit", lambda _real, _flags: 803),
    "stub": ("libcuda", "cuInit", lambda _real, _flags: 34),
    "no_fabric_manager": ("libcuda", "cuInit", lambda _real, _flags: 802),
    "driver_hangs": ("libcuda", "cuInit", lambda _real, _flags: time.sleep(3600)),
    "old_gpu": (
        "libcuda",
        "cuDeviceGetAttribute",
        lambda real, *given: _attribute(real, *given, major=3, minor=5),
    ),
    "prohibited": (
        "libcuda",
        "cuDeviceGetAttribute",
        lambda real, *given: _attribute(real, *given, mode=_PROHIBITED),
    ),
    "lost_gpu": ("libnvidia-ml", "nvmlDeviceGetCount_v2", _one_more),
    "mig": ("libnvidia-ml", "nvmlDeviceGetMigMode", _mig),
    "old_cudnn": ("libcudnn", "cudnnGetVersion", _older_cudnn),
}

#: The seed that makes up a driver with one GPU.
ONE_GPU = "one_gpu"
NAMES = (*CHANGES, ONE_GPU)


def _nvml_memory(_handle: Any, pointer: Any) -> int:
    pointer._obj.total, pointer._obj.used = _MEMORY, 0
    return 0


_FAKE: dict[tuple[str, str], Callable[..., int]] = {
    ("libcuda", "cuInit"): lambda _flags: 0,
    ("libcuda", "cuDriverGetVersion"): lambda pointer: _set(pointer, 12080),
    ("libcuda", "cuDeviceGetCount"): lambda pointer: _set(pointer, 1),
    ("libcuda", "cuDeviceGet"): lambda pointer, number: _set(pointer, number),
    ("libcuda", "cuDeviceGetName"): lambda buffer, _size, _handle: _set(buffer, b"made up"),
    ("libcuda", "cuDeviceGetAttribute"): lambda pointer, which, _handle: _set(pointer, _H200[which]),
    ("libcuda", "cuDeviceTotalMem_v2"): lambda pointer, _handle: _set(pointer, _MEMORY),
    ("libnvidia-ml", "nvmlInit_v2"): lambda: 0,
    ("libnvidia-ml", "nvmlShutdown"): lambda: 0,
    ("libnvidia-ml", "nvmlDeviceGetCount_v2"): lambda pointer: _set(pointer, 1),
    ("libnvidia-ml", "nvmlSystemGetDriverVersion"): lambda buffer, _size: _set(buffer, b"570.0"),
    ("libnvidia-ml", "nvmlDeviceGetHandleByIndex_v2"): lambda number, _pointer: 0 if number == 0 else 2,
    ("libnvidia-ml", "nvmlDeviceGetName"): lambda _handle, buffer, _size: _set(buffer, b"made up"),
    ("libnvidia-ml", "nvmlDeviceGetMemoryInfo"): _nvml_memory,
    ("libnvidia-ml", "nvmlDeviceGetComputeMode"): lambda _handle, pointer: _set(pointer, 0),
    ("libnvidia-ml", "nvmlDeviceGetNvLinkState"): lambda _handle, _number, _pointer: 3,
    ("libnvidia-ml", "nvmlDeviceGetMigMode"): lambda _handle, current, pending: (
        _set(current, 0) or _set(pending, 0)
    ),
}


class _Function:
    """A function of a library; what ctypes lets one set on it is kept."""

    def __init__(self, call: Callable[..., Any], real: Any = None) -> None:
        self._call, self._real = call, real

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name in ("restype", "argtypes") and self._real is not None:
            setattr(self._real, name, value)

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)


def start(names: list[str]) -> None:
    """Put a class in the place of ``ctypes.CDLL`` that answers as the seeds say."""
    changes = {CHANGES[name][:2]: [] for name in names if name in CHANGES}  # type: ignore[var-annotated]
    for name in names:
        if name in CHANGES:
            changes[CHANGES[name][:2]].append(CHANGES[name][2])
    fake = ONE_GPU in names

    class Library(ctypes.CDLL):
        def __init__(self, name: Any, *arguments: Any, **more: Any) -> None:
            family = os.path.basename(str(name)).split(".so")[0]
            self._family, self._fake = family, fake and any(family == one for one, _ in _FAKE)
            if self._fake:
                self._name = name
            else:
                super().__init__(name, *arguments, **more)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            if self._fake:
                if (self._family, name) not in _FAKE:
                    raise AttributeError(name)
                real: Any = _Function(_FAKE[self._family, name])
            else:
                real = self[name]  # the real __getattr__ would keep the function, and ask us no more
            found = real
            for change in changes.get((self._family, name), ()):
                found = _Function(lambda *given, change=change, under=found: change(under, *given), real)
            return found

    ctypes.CDLL = Library  # type: ignore[misc]
