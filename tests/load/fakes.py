"""An NVML as ctypes would show it: calls fill in what ``byref`` points to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOT_SUPPORTED, NO_PERMISSION, TIMEOUT = 3, 4, 10


class FakeNvml:
    """Two GPUs. ``without`` are calls that this driver lacks, ``status`` errors by call."""

    def __init__(self, *, without: tuple[str, ...] = (), status: Mapping[str, int] | None = None) -> None:
        self.status = dict(status or {})
        self.celsius = [50, 60]
        self.throttle = [0, 0]
        self.ecc = [{(1, 0): 0, (0, 0): 0, (1, 1): 0, (0, 1): 0} for _ in range(2)]
        self.xids: list[tuple[int, int]] = []
        self.calls: list[str] = []
        self._without = without

    def __getattr__(self, name: str) -> Any:
        handler = getattr(type(self), f"do_{name}", None)
        if not name.startswith("nvml") or handler is None or name in self._without:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name in self.status:
                return self.status[name]
            return handler(self, *arguments) or 0

        return call

    def do_nvmlInit_v2(self) -> None: ...  # noqa: N802

    def do_nvmlShutdown(self) -> None: ...  # noqa: N802

    def do_nvmlSystemGetDriverVersion(self, text: Any, size: int) -> None:  # noqa: N802
        text.value = b"580.1"

    def do_nvmlDeviceGetCount_v2(self, count: Any) -> None:  # noqa: N802
        count._obj.value = 2

    def do_nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> None:  # noqa: N802
        handle._obj.value = 100 + index

    def do_nvmlDeviceGetName(self, handle: Any, text: Any, size: int) -> None:  # noqa: N802
        text.value = b"NVIDIA H200"

    def do_nvmlDeviceGetEnforcedPowerLimit(self, handle: Any, out: Any) -> None:  # noqa: N802
        out._obj.value = 700_000

    def do_nvmlDeviceGetMemoryInfo(self, handle: Any, out: Any) -> None:  # noqa: N802
        out._obj.total, out._obj.used = 150 << 30, 1 << 30

    def do_nvmlDeviceGetTemperatureThreshold(self, handle: Any, which: int, out: Any) -> None:  # noqa: N802
        out._obj.value = {0: 95, 1: 90}[which]

    def do_nvmlDeviceGetMaxClockInfo(self, handle: Any, which: int, out: Any) -> None:  # noqa: N802
        out._obj.value = 1980

    def do_nvmlDeviceGetPowerUsage(self, handle: Any, out: Any) -> None:  # noqa: N802
        out._obj.value = 650_500

    def do_nvmlDeviceGetUtilizationRates(self, handle: Any, out: Any) -> None:  # noqa: N802
        out._obj.gpu = 97

    def do_nvmlDeviceGetTemperature(self, handle: Any, which: int, out: Any) -> None:  # noqa: N802
        out._obj.value = self.celsius[handle.value - 100]

    def do_nvmlDeviceGetClockInfo(self, handle: Any, which: int, out: Any) -> None:  # noqa: N802
        out._obj.value = {1: 1900, 2: 3201}[which]

    def do_nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any, out: Any) -> None:  # noqa: N802
        out._obj.value = self.throttle[handle.value - 100]

    def do_nvmlDeviceGetFieldValues(self, handle: Any, count: int, field: Any) -> None:  # noqa: N802
        assert (count, field._obj.field_id) == (1, 82)
        field._obj.result, field._obj.value = 0, 71

    def do_nvmlDeviceGetTotalEccErrors(self, handle: Any, kind: int, counter: int, out: Any) -> None:  # noqa: N802
        out._obj.value = self.ecc[handle.value - 100][kind, counter]

    def do_nvmlDeviceGetRemappedRows(self, handle: Any, *out: Any) -> None:  # noqa: N802
        for one, value in zip(out, (1, 2, 0, 0), strict=True):
            one._obj.value = value

    def do_nvmlEventSetCreate(self, out: Any) -> None:  # noqa: N802
        out._obj.value = 7

    def do_nvmlDeviceRegisterEvents(self, handle: Any, mask: Any, events: Any) -> None:  # noqa: N802
        assert (mask.value, events.value) == (8, 7)

    def do_nvmlEventSetWait_v2(self, events: Any, data: Any, timeout: int) -> int:  # noqa: N802
        assert timeout == 0
        if not self.xids:
            return TIMEOUT
        gpu, xid = self.xids.pop(0)
        data._obj.device, data._obj.event_type, data._obj.event_data = 100 + gpu, 8, xid
        return 0
