"""Is there a GPU? One probe of the driver, shared by all GPU checks, and the decision on it."""

from __future__ import annotations

import ctypes
import os
from dataclasses import asdict, dataclass, field
from typing import Any, Callable

from . import nvml
from .protocol import NO_GPU

PRESENT, ABSENT, BROKEN = "present", "absent", "broken"
PROBE = "the probe of the driver"  # how ``trouble`` starts where it crashed or hung

_CUDA_ERROR_NO_DEVICE = 100
_COMPUTE_MAJOR, _COMPUTE_MINOR, _COMPUTE_MODE = 75, 76, 20
_COMPUTE_MODES = {0: "default", 1: "exclusive", 2: "prohibited", 3: "exclusive process"}


@dataclass(frozen=True)
class Gpu:
    """What the driver says.

    Args:
        nodes: whether /dev/nvidiactl (or WSL's /dev/dxg) is there.
        library: whether libcuda.so.1 could be loaded.
        error: the CUDA driver's error number, 0 for none.
        count: how many GPUs it sees.
        cuda: the newest CUDA that the driver serves, e.g. ``12.4``.
        kernel: the first line of /proc/driver/nvidia/version.
        devices: name, UUID, compute capability, bytes of memory and compute mode of each GPU.
        nvml: what ``nvml.probe`` says of all GPUs, whatever CUDA_VISIBLE_DEVICES says.
        visible: CUDA_VISIBLE_DEVICES; None if it is not set.
        hidden: what CUDA_VISIBLE_DEVICES says, if it hides every GPU.
        trouble: why libcuda could not be loaded or called.
    """

    nodes: bool = False
    library: bool = False
    error: int = 0
    count: int = 0
    cuda: str = ""
    kernel: str = ""
    devices: tuple[dict[str, Any], ...] = field(default=())
    nvml: dict[str, Any] = field(default_factory=dict)
    visible: str | None = None
    hidden: str = ""
    trouble: str = ""

    @property
    def state(self) -> str:
        """``present``, ``absent``, or ``broken``: a driver that is there and gives no GPU."""
        if self.count > 0:
            return PRESENT
        if self.hidden:
            return ABSENT
        if self.nodes or (self.library and self.error not in (0, _CUDA_ERROR_NO_DEVICE)):
            return BROKEN
        return ABSENT

    def reason(self) -> str:
        """Why GPU checks are not run in this state."""
        if self.state == ABSENT:
            if self.hidden and (self.nodes or self.nvml.get("count")):
                return f"deliberately hidden: CUDA_VISIBLE_DEVICES is {self.hidden}"
            return NO_GPU
        return "the GPU driver does not work here: see the check gpu_visible"

    def as_json(self) -> dict[str, Any]:
        """The fields as an object; ``state`` is added for readers."""
        return dict(asdict(self), state=self.state)

    def told(self) -> dict[str, Any]:
        """``as_json`` for reports, without what names one GPU among all: reports are published."""
        return dict(self.as_json(), devices=[anonymous(device) for device in self.devices])


def anonymous(device: dict[str, Any]) -> dict[str, Any]:
    """What is told of a device: all but its UUID."""
    return {key: value for key, value in device.items() if key != "uuid"}


def from_json(data: dict[str, Any]) -> Gpu:
    """The inverse of ``as_json``."""
    fields = {key: value for key, value in data.items() if key in Gpu.__dataclass_fields__}
    fields["devices"] = tuple(fields.get("devices", ()))
    return Gpu(**fields)


def probe(
    load: Callable[[str], Any] = ctypes.CDLL,
    exists: Callable[[str], bool] = os.path.exists,
) -> Gpu:
    """Ask the driver. Run it in a process of its own: a broken driver can crash or hang."""
    nodes = exists("/dev/nvidiactl") or exists("/dev/dxg")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    hidden = "" if visible is None or visible.strip() not in ("", "-1") else repr(visible)
    try:
        driver = load("libcuda.so.1")
    except OSError as missing:
        return Gpu(nodes=nodes, visible=visible, hidden=hidden, trouble=str(missing))
    number = ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(number))
    cuda = "{}.{}".format(number.value // 1000, number.value % 1000 // 10)
    error = int(driver.cuInit(0))
    count = ctypes.c_int(0)
    if error == 0:
        error = int(driver.cuDeviceGetCount(ctypes.byref(count)))
    return Gpu(
        nodes=nodes,
        library=True,
        error=error,
        count=count.value if error == 0 else 0,
        cuda=cuda,
        kernel=_kernel_driver(),
        devices=tuple(_device(driver, n) for n in range(count.value if error == 0 else 0)),
        nvml=nvml.probe(load),
        visible=visible,
        hidden=hidden,
    )


def _device(driver: Any, ordinal: int) -> dict[str, Any]:
    handle, major, minor = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0)
    mode, memory, name = ctypes.c_int(-1), ctypes.c_size_t(0), ctypes.create_string_buffer(256)
    driver.cuDeviceGet(ctypes.byref(handle), ordinal)
    driver.cuDeviceGetName(name, len(name), handle)
    driver.cuDeviceGetAttribute(ctypes.byref(major), _COMPUTE_MAJOR, handle)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), _COMPUTE_MINOR, handle)
    driver.cuDeviceGetAttribute(ctypes.byref(mode), _COMPUTE_MODE, handle)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    return {
        "name": name.value.decode("utf-8", "replace"),
        "uuid": _uuid(driver, handle),
        "compute_capability": f"{major.value}.{minor.value}",
        "memory_bytes": memory.value,
        "compute_mode": _COMPUTE_MODES.get(mode.value, str(mode.value)),
    }


def _uuid(driver: Any, handle: Any) -> str:
    """In hexadecimal; of a part of a GPU (MIG) its own where the driver tells. Empty if it does not."""
    raw = ctypes.create_string_buffer(16)
    for call in ("cuDeviceGetUuid_v2", "cuDeviceGetUuid"):
        try:
            if getattr(driver, call)(raw, handle) == 0:
                return raw.raw.hex()
        except AttributeError:
            continue
    return ""


def _kernel_driver() -> str:
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as stream:
            return stream.readline().strip()
    except OSError:
        return ""
