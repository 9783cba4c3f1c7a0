"""NVIDIA's management library through ctypes. Every call is optional: what a driver lacks reads as None."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

LIBRARY = "libnvidia-ml.so.1"

SUCCESS = 0
_ERRORS = {
    1: "uninitialized",
    2: "invalid argument",
    3: "not supported",
    4: "no permission",
    9: "the driver is not loaded",
    10: "timeout",
    12: "library and driver differ in version",
    15: "the GPU is lost",
    16: "the GPU needs a reset",
    17: "the operating system blocks it",
    18: "library and driver differ in version",
}
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1
_XID = 0x8
_MEMORY_TEMPERATURE = 82

# nvml.h: nvmlClocksEventReasons
REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock",
}


class NvmlError(Exception):
    """The library cannot be used here, with the reason."""


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    """nvmlMemory_t; the call without a version suffix takes this one in every driver."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class _EventData(ctypes.Structure):
    """nvmlEventData_t of nvmlEventSetWait_v2, which is that of v1 with two fields more."""

    _fields_ = [
        ("device", ctypes.c_void_p),
        ("event_type", ctypes.c_ulonglong),
        ("event_data", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class _FieldValue(ctypes.Structure):
    """nvmlFieldValue_t; ``value`` is a union, of which the first four bytes are its unsigned int."""

    _fields_ = [
        ("field_id", ctypes.c_uint),
        ("scope_id", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("value_type", ctypes.c_uint),
        ("result", ctypes.c_int),
        ("value", ctypes.c_uint),
        ("_rest", ctypes.c_uint),
    ]


def names_of(reasons: int) -> list[str]:
    """The throttle reasons of a mask; a bit that is unknown by its number."""
    return [REASONS.get(1 << bit, "reason {:#x}".format(1 << bit)) for bit in range(64) if reasons >> bit & 1]


class Nvml:
    """An initialised library.

    Args:
        library: anything whose attributes are callable as those of ``ctypes.CDLL``.

    Raises:
        NvmlError: it cannot be initialised.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._events: Any = None
        self.refused: dict[str, str] = {}
        start = self._function("nvmlInit_v2") or self._function("nvmlInit")
        status = start() if start else 1
        if status != SUCCESS:
            raise NvmlError("nvmlInit: {}".format(_ERRORS.get(status, "error {}".format(status))))

    @classmethod
    def open(cls, load: Callable[[str], Any] = ctypes.CDLL) -> Nvml:
        """The driver's own.

        Raises:
            NvmlError: there is none, or it does not work.
        """
        try:
            return cls(load(LIBRARY))
        except OSError as error:
            raise NvmlError(str(error)) from error

    def close(self) -> None:
        """Give it back."""
        self._call("nvmlShutdown")

    def _function(self, *names: str) -> Any:
        return next(
            (f for f in (getattr(self._library, name, None) for name in names) if f is not None), None
        )

    def _call(self, name: str, *arguments: Any, older: str = "") -> bool:
        """Whether the call was made and succeeded; why not is kept in ``refused``."""
        function = self._function(name, older) if older else self._function(name)
        if function is None:
            self.refused[name] = "not in this driver"
            return False
        status = function(*arguments)
        if status != SUCCESS:
            self.refused[name] = _ERRORS.get(status, "error {}".format(status))
        return bool(status == SUCCESS)

    def _number(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint, older: str = "") -> int | None:
        value = kind(0)
        return int(value.value) if self._call(name, *arguments, ctypes.byref(value), older=older) else None

    def _text(self, name: str, *arguments: Any) -> str:
        text = ctypes.create_string_buffer(96)
        return text.value.decode("utf-8", "replace") if self._call(name, *arguments, text, 96) else ""

    def driver(self) -> str:
        """The driver's version; empty if it does not tell."""
        return self._text("nvmlSystemGetDriverVersion")

    def devices(self) -> list[Any]:
        """A handle for each GPU, in the order of their places on the PCI bus."""
        count = self._number("nvmlDeviceGetCount_v2", older="nvmlDeviceGetCount") or 0
        handles = []
        for index in range(count):
            handle = ctypes.c_void_p()
            name, older = "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"
            if self._call(name, index, ctypes.byref(handle), older=older):
                handles.append(handle)
        return handles

    def about(self, device: Any) -> dict[str, Any]:
        """What does not change: name, limits (°C, W, MHz) and memory (bytes)."""
        limit = self._number("nvmlDeviceGetEnforcedPowerLimit", device)
        memory = _Memory()
        known = self._call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        return {
            "name": self._text("nvmlDeviceGetName", device),
            "slowdown_celsius": self._number("nvmlDeviceGetTemperatureThreshold", device, 1),
            "shutdown_celsius": self._number("nvmlDeviceGetTemperatureThreshold", device, 0),
            "limit_watts": None if limit is None else limit / 1000.0,
            "max_sm_mhz": self._number("nvmlDeviceGetMaxClockInfo", device, 1),
            "memory_bytes": int(memory.total) if known else None,
        }

    def sample(self, device: Any) -> dict[str, Any]:
        """What changes: °C, MHz, W, per cent, and the mask of throttle reasons."""
        milliwatts = self._number("nvmlDeviceGetPowerUsage", device)
        used = _Utilization()
        busy = self._call("nvmlDeviceGetUtilizationRates", device, ctypes.byref(used))
        return {
            "celsius": self._number("nvmlDeviceGetTemperature", device, 0),
            "memory_celsius": self._memory_celsius(device),
            "sm_mhz": self._number("nvmlDeviceGetClockInfo", device, 1),
            "memory_mhz": self._number("nvmlDeviceGetClockInfo", device, 2),
            "watts": None if milliwatts is None else milliwatts / 1000.0,
            "busy_percent": int(used.gpu) if busy else None,
            "throttle": self._number(
                "nvmlDeviceGetCurrentClocksThrottleReasons",
                device,
                kind=ctypes.c_ulonglong,
                older="nvmlDeviceGetCurrentClocksEventReasons",
            ),
        }

    def _memory_celsius(self, device: Any) -> int | None:
        field = _FieldValue(field_id=_MEMORY_TEMPERATURE)
        told = self._call("nvmlDeviceGetFieldValues", device, 1, ctypes.byref(field))
        return int(field.value) if told and field.result == SUCCESS else None

    def errors(self, device: Any) -> dict[str, int | None]:
        """Counters of memory errors; None where the GPU has none, or keeps them from us."""

        def ecc(kind: int, counter: int) -> int | None:
            return self._number("nvmlDeviceGetTotalEccErrors", device, kind, counter, kind=ctypes.c_ulonglong)

        corrected, uncorrected, pending, failed = (ctypes.c_uint(0) for _ in range(4))
        rows = [ctypes.byref(n) for n in (corrected, uncorrected, pending, failed)]
        remapped = self._call("nvmlDeviceGetRemappedRows", device, *rows)
        return {
            "corrected_volatile": ecc(_CORRECTED, _VOLATILE),
            "uncorrected_volatile": ecc(_UNCORRECTED, _VOLATILE),
            "corrected_aggregate": ecc(_CORRECTED, _AGGREGATE),
            "uncorrected_aggregate": ecc(_UNCORRECTED, _AGGREGATE),
            "remapped_rows": corrected.value + uncorrected.value if remapped else None,
            "remap_failed": failed.value if remapped else None,
        }

    def watch(self, devices: list[Any]) -> bool:
        """Ask for Xid errors of the GPUs; whether all of them will tell."""
        events = ctypes.c_void_p()
        if not devices or not self._call("nvmlEventSetCreate", ctypes.byref(events)):
            return False
        self._events = events
        mask = ctypes.c_ulonglong(_XID)
        asked = [self._call("nvmlDeviceRegisterEvents", device, mask, events) for device in devices]
        return all(asked)

    def xids(self, devices: list[Any]) -> list[tuple[int, int]]:
        """(position in ``devices`` or -1, Xid) of each that has come since the last call; does not wait."""
        found: list[tuple[int, int]] = []
        wait = self._function("nvmlEventSetWait_v2", "nvmlEventSetWait")
        if self._events is None or wait is None:
            return found
        data = _EventData()
        while len(found) < 100 and wait(self._events, ctypes.byref(data), 0) == SUCCESS:
            if data.event_type & _XID:
                places = [n for n, device in enumerate(devices) if device.value == data.device]
                found.append((places[0] if places else -1, int(data.event_data)))
        return found
