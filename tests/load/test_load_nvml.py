from __future__ import annotations

import ctypes
from typing import Any

import pytest
from fakes import NO_PERMISSION, NOT_SUPPORTED, FakeNvml
from tfenv_load import nvml
from tfenv_load.kernel_log import KernelLog, parse
from tfenv_load.nvml import Nvml, NvmlError, names_of
from tfenv_load.sampler import Sampler


def test_structures_have_the_sizes_of_nvml_h():
    sizes = [ctypes.sizeof(s) for s in (nvml._Utilization, nvml._Memory, nvml._EventData, nvml._FieldValue)]
    assert sizes == [8, 24, 32, 40]


def test_everything_is_read():
    library = Nvml(FakeNvml())
    first, second = library.devices()
    assert library.driver() == "580.1"
    assert library.about(first) == {
        "name": "NVIDIA H200",
        "slowdown_celsius": 90,
        "shutdown_celsius": 95,
        "limit_watts": 700.0,
        "max_sm_mhz": 1980,
        "memory_bytes": 150 << 30,
    }
    assert library.sample(second) == {
        "celsius": 60,
        "memory_celsius": 71,
        "sm_mhz": 1900,
        "memory_mhz": 3201,
        "watts": 650.5,
        "busy_percent": 97,
        "throttle": 0,
    }
    assert library.errors(first) == {
        "corrected_volatile": 0,
        "uncorrected_volatile": 0,
        "corrected_aggregate": 0,
        "uncorrected_aggregate": 0,
        "remapped_rows": 3,
        "remap_failed": 0,
    }
    assert library.refused == {}


def test_a_call_that_the_driver_lacks_or_refuses_reads_as_none_and_is_noted():
    lacking = ("nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetFieldValues")
    fake = FakeNvml(without=lacking, status={"nvmlDeviceGetTotalEccErrors": NOT_SUPPORTED})
    library = Nvml(fake)
    (device, _) = library.devices()
    sample = library.sample(device)
    assert (sample["throttle"], sample["memory_celsius"], sample["celsius"]) == (None, None, 50)
    assert library.errors(device)["uncorrected_volatile"] is None
    assert library.refused["nvmlDeviceGetTotalEccErrors"] == "not supported"
    assert library.refused[lacking[0]] == "not in this driver"


def test_a_library_that_is_missing_or_does_not_start_says_why():
    def missing(_name: str) -> Any:
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    with pytest.raises(NvmlError, match="cannot open"):
        Nvml.open(missing)
    with pytest.raises(NvmlError, match="driver is not loaded"):
        Nvml.open(lambda _name: FakeNvml(status={"nvmlInit_v2": 9}))
    with pytest.raises(NvmlError):
        Nvml(object())


def test_xids_come_once_with_their_gpu():
    fake = FakeNvml()
    library = Nvml(fake)
    devices = library.devices()
    assert library.watch(devices)
    fake.xids = [(1, 79), (0, 48)]
    assert library.xids(devices) == [(1, 79), (0, 48)]
    assert library.xids(devices) == []


def test_who_may_not_watch_is_told_nothing():
    library = Nvml(FakeNvml(status={"nvmlDeviceRegisterEvents": NO_PERMISSION}))
    assert not library.watch(library.devices())
    assert not Nvml(FakeNvml(without=("nvmlEventSetCreate",))).watch([ctypes.c_void_p(100)])
    assert not Nvml(FakeNvml()).watch([])


def test_reasons_have_names():
    assert names_of(0x4 | 0x40) == ["software power cap", "hardware thermal slowdown"]
    assert names_of(1 << 20) == ["reason 0x100000"]
    assert names_of(0) == []


def test_xids_are_found_in_the_kernel_log():
    text = (
        "3,1,2,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
        "6,1,2,-;usb 1-1: new device\n"
        "4,1,2,-;NVRM: Xid (0000:3c:00): 48, DBE\n"
    )
    assert parse(text) == [("0000:3b:00", 79), ("0000:3c:00", 48)]
    assert parse("NVRM: loading") == []


def test_a_log_that_cannot_be_read_gives_nothing(tmp_path):
    log = KernelLog(str(tmp_path / "none"))
    assert not log.readable and log.xids() == []


def test_only_what_comes_after_the_start_counts(tmp_path):
    path = tmp_path / "kmsg"
    path.write_text("NVRM: Xid (PCI:0000:01:00): 13, old\n")
    log = KernelLog(str(path))
    assert log.readable and log.xids() == []
    with path.open("a") as file:
        file.write("NVRM: Xid (PCI:0000:01:00): 79, new\n")
    assert log.xids() == [("0000:01:00", 79)]
    log.close()


def sampled(fake: FakeNvml, tmp_path: Any, during: Any = lambda: None) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    log = KernelLog(str(tmp_path / "none"))
    with Sampler(events.append, interval=0.01, load=lambda: Nvml(fake), log=lambda: log):
        during()
    return events


def test_the_sampler_tells_the_gpus_their_samples_and_their_errors(tmp_path):
    fake = FakeNvml()

    def during() -> None:
        fake.ecc[1][1, 0] = 2
        fake.xids.append((1, 48))

    events = sampled(fake, tmp_path, during)
    kinds = [event["event"] for event in events]
    assert kinds[:3] == ["driver", "gpu", "gpu"] and kinds[-1] == "sampled"
    assert {event["gpu"] for event in events if event["event"] == "sample"} == {0, 1}
    assert [e["errors"]["uncorrected_volatile"] for e in events if e["event"] == "errors"] == [0, 2]
    assert [(e["gpu"], e["xid"]) for e in events if e["event"] == "xid"] == [(1, 48)]
    assert events[-1]["xid_sources"] == ["NVML"]
    assert "nvmlShutdown" in fake.calls


def test_without_nvml_the_sampler_says_so_and_the_rest_goes_on(tmp_path):
    events: list[dict[str, Any]] = []

    def missing() -> Nvml:
        raise NvmlError("no library")

    with Sampler(events.append, load=missing, log=lambda: KernelLog(str(tmp_path / "none"))):
        pass
    assert [event["event"] for event in events] == ["unsampled", "sampled"]
    assert events[0]["why"] == "no library" and events[1]["xid_sources"] == []
