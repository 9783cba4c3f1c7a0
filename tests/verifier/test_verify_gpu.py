from __future__ import annotations

from typing import Any

import pytest
from tfenv_verify import nvml
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
        value._obj.value = {75: 9, 76: 0, 20: 3}[attribute]
        return 0

    def cuDeviceTotalMem_v2(self, memory: Any, handle: Any) -> int:  # noqa: N802
        memory._obj.value = 1 << 37
        return 0

    def cuDeviceGetUuid(self, uuid: Any, handle: Any) -> int:  # noqa: N802
        uuid.raw = bytes(range(16))
        return 0


class Nvml:
    """An NVML of one GPU with two NVLinks, of a driver that knows no MIG."""

    def __init__(self, status: int = 0, count: int = 1) -> None:
        self.status, self.count = status, count

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return self.status

    def nvmlShutdown(self) -> int:  # noqa: N802
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, length: int) -> int:  # noqa: N802
        text.value = b"580.95.05"
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = self.count
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:  # noqa: N802
        return 0 if index == 0 else 15

    def nvmlDeviceGetName(self, handle: Any, text: Any, length: int) -> int:  # noqa: N802
        text.value = b"NVIDIA H200"
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:  # noqa: N802
        memory._obj.total, memory._obj.used = 1 << 37, 1 << 29
        return 0

    def nvmlDeviceGetComputeMode(self, handle: Any, mode: Any) -> int:  # noqa: N802
        mode._obj.value = 2
        return 0

    def nvmlDeviceGetNvLinkState(self, handle: Any, link: int, active: Any) -> int:  # noqa: N802
        active._obj.value = 1 if link < 2 else 0
        return 0 if link < 3 else 3


class NvmlWithMig(Nvml):
    def nvmlDeviceGetMigMode(self, handle: Any, current: Any, pending: Any) -> int:  # noqa: N802
        current._obj.value = 1
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
        "uuid": "000102030405060708090a0b0c0d0e0f",
        "compute_capability": "9.0",
        "memory_bytes": 1 << 37,
        "compute_mode": "exclusive process",
    }
    assert from_json(gpu.as_json()) == gpu
    assert "uuid" not in str(gpu.told()) and gpu.told()["devices"][1]["name"] == "NVIDIA H200"


def test_the_uuid_is_that_of_a_part_of_a_gpu_where_the_driver_tells() -> None:
    driver = Driver()

    def newer(uuid: Any, handle: Any) -> int:
        uuid.raw = b"\xff" * 16
        return 0

    driver.cuDeviceGetUuid_v2 = newer  # type: ignore[attr-defined]
    gpu = probe(load=lambda soname: driver, exists=lambda path: True)
    assert gpu.devices[0]["uuid"] == "ff" * 16
    driver.cuDeviceGetUuid_v2 = lambda uuid, handle: 999  # type: ignore[attr-defined]
    driver.cuDeviceGetUuid = lambda uuid, handle: 999  # type: ignore[method-assign]
    assert probe(load=lambda soname: driver, exists=lambda path: True).devices[0]["uuid"] == ""


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


def test_gpus_that_are_there_and_hidden_are_said_to_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        gpu = probe(load=lambda soname: Driver(0, error=100), exists=lambda path: True)
        assert gpu.reason() == f"deliberately hidden: CUDA_VISIBLE_DEVICES is {value!r}"
        nowhere = probe(load=no_library, exists=lambda path: False)
        assert (nowhere.state, nowhere.reason()) == ("absent", "no GPU")


def test_nvml_tells_what_cuda_does_not() -> None:
    found = nvml.probe(load=lambda soname: Nvml())
    assert (found["count"], found["driver"], found["trouble"]) == (1, "580.95.05", "")
    assert found["devices"] == [
        {
            "name": "NVIDIA H200",
            "memory_bytes": 1 << 37,
            "used_bytes": 1 << 29,
            "mig": None,
            "compute_mode": "prohibited",
            "nvlinks": 2,
        }
    ]
    assert nvml.probe(load=lambda soname: NvmlWithMig())["devices"][0]["mig"] is True


def test_nvml_that_does_not_work_says_why() -> None:
    assert "error 9" in nvml.probe(load=lambda soname: Nvml(status=9))["trouble"]
    assert "cannot open" in nvml.probe(load=no_library)["trouble"]
    assert nvml.probe(load=lambda soname: object())["trouble"]
    assert nvml.probe(load=lambda soname: Nvml(count=2))["devices"][1] == {}
