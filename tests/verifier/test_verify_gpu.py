from __future__ import annotations

from typing import Any

import pytest
from tfenv_verify.gpu import Gpu, from_json, probe


class Driver:
    """A libcuda with ``count`` GPUs that answers ``error`` to cuInit."""

    def __init__(self, count: int = 1, error: int = 0) -> None:
        self.count, self.error = count, error

    def cuDriverGetVersion(self, version: Any) -> int:  # noqa: N802
        version._obj.value = 12040
        return 0

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return self.error

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = self.count
        return 0

    def cuDeviceGet(self, handle: Any, ordinal: int) -> int:  # noqa: N802
        handle._obj.value = ordinal
        return 0

    def cuDeviceGetName(self, name: Any, length: int, handle: Any) -> int:  # noqa: N802
        name.value = b"NVIDIA H200"
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, handle: Any) -> int:  # noqa: N802
        value._obj.value = {75: 9, 76: 0}[attribute]
        return 0

    def cuDeviceTotalMem_v2(self, memory: Any, handle: Any) -> int:  # noqa: N802
        memory._obj.value = 1 << 37
        return 0


def no_library(soname: str) -> Any:
    raise OSError(f"{soname}: cannot open shared object file")


@pytest.fixture(autouse=True)
def _nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_a_working_driver_is_described() -> None:
    gpu = probe(load=lambda soname: Driver(2), exists=lambda path: True)
    assert (gpu.state, gpu.count, gpu.cuda) == ("present", 2, "12.4")
    assert gpu.devices[0] == {
        "name": "NVIDIA H200",
        "compute_capability": "9.0",
        "memory_bytes": 1 << 37,
    }
    assert from_json(gpu.as_json()) == gpu


def test_no_driver_is_no_gpu() -> None:
    gpu = probe(load=no_library, exists=lambda path: False)
    assert gpu.state == "absent"
    assert gpu.reason() == "no GPU"


def test_a_driver_library_without_a_gpu_is_no_gpu() -> None:
    gpu = probe(load=lambda soname: Driver(0, error=100), exists=lambda path: False)
    assert gpu.state == "absent"


def test_device_nodes_without_a_driver_library_are_broken() -> None:
    gpu = probe(load=no_library, exists=lambda path: path == "/dev/nvidiactl")
    assert gpu.state == "broken"
    assert "gpu_visible" in gpu.reason()


@pytest.mark.parametrize("nodes", [True, False])
def test_a_driver_that_answers_an_error_is_broken(nodes: bool) -> None:
    gpu = probe(load=lambda soname: Driver(1, error=803), exists=lambda path: nodes)
    assert (gpu.state, gpu.error, gpu.count) == ("broken", 803, 0)


def test_gpus_hidden_on_purpose_are_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    gpu = probe(load=lambda soname: Driver(0, error=100), exists=lambda path: True)
    assert gpu.state == "absent"
    assert Gpu(nodes=True, error=100, library=True).state == "broken"
