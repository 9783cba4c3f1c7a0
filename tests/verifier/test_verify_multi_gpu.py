"""Several GPUs: what each kind of all-reduce gave, and what is said of one that hangs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tfenv_verify.checks import multi_gpu
from tfenv_verify.checks._strategy import nccl_speaks
from tfenv_verify.checks.multi_gpu import COPY, DEFAULT, NCCL, ONE, judge, judge_all
from tfenv_verify.context import Context
from tfenv_verify.declared import Declared
from tfenv_verify.gpu import Gpu
from tfenv_verify.protocol import ONE_GPU, NotRunError, Report

V215 = Declared(cell="c", compiled_nccl="2.16.5", compiled_nccl_how="linked", nccl_sass=("7.0", "8.0"))
HUNG = {"failed": "had not ended after 45 s and was killed", "hung": True, "tail": "Launch mode Parallel"}
BROKE = {"failed": "ended with code 1: unhandled cuda error", "tail": "NCCL WARN"}
SHM = SimpleNamespace(f_frsize=4096, f_blocks=1 << 20)
SMALL = SimpleNamespace(f_frsize=4096, f_blocks=(64 << 20) // 4096)


def right(count: int = 2, **more: Any) -> dict[str, Any]:
    found = {
        "devices": count,
        "replicas": count,
        "weights": [[0.5, 0.25]] * count,
        "one_device": [0.5, 0.25],
        "exact": [0.5, 0.25],
        "wrong_elements": [0.0] * count,
        "elements": 100,
        "gigabytes_per_second": 100.0,
        "sums": [91.0, 91.0],
    }
    found.update(more)
    return found


def wrong(**more: Any) -> list[str]:
    report = Report()
    judge(COPY, right(**more), 2, report)
    assert all(finding["severity"] == "error" and finding["remedy"] for finding in report.findings)
    return [finding["message"] for finding in report.findings]


def all_of(found: dict[str, Any], declared: Declared = Declared(), unserved: bool = False) -> Report:  # noqa: B008
    report = Report()
    judge_all(found, 2, unserved, declared, report)
    return report


def test_a_step_that_is_right_passes() -> None:
    assert wrong() == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"replicas": 1}, "but 1 replicas"),
        ({"weights": [[0.5, 0.25], [0.5, 0.26]]}, "weights differ"),
        ({"weights": [[0.5, 0.25]]}, "weights differ"),
        ({"weights": []}, "weights differ"),
        ({"exact": [0.5, 0.251]}, "float64 on the CPU"),
        ({"one_device": [0.5, 0.251]}, "one device"),
        ({"exact": [float("nan"), 0.25]}, "float64 on the CPU"),
        ({"wrong_elements": [0.0, 1.0]}, "[0.0, 1.0] are wrong"),
        ({"wrong_elements": [0.0]}, "are wrong"),
        ({"wrong_elements": [0.0, float("nan")]}, "are wrong"),
        ({"sums": [81.0, 91.0]}, "sums to 81.0, not 91.0"),
    ],
)
def test_what_is_wrong_fails(more: dict[str, Any], message: str) -> None:
    assert any(message in said for said in wrong(**more))


def test_all_kinds_that_work_pass() -> None:
    report = all_of({kind: right() for kind in (COPY, ONE, NCCL, DEFAULT)})
    assert (report.status, report.findings) == ("pass", [])


@pytest.mark.parametrize("bad", [HUNG, BROKE])
def test_an_nccl_that_fails_names_what_works_instead(bad: dict[str, Any]) -> None:
    report = all_of({COPY: right(), ONE: right(), NCCL: bad})
    (finding,) = report.findings
    assert report.status == "fail"
    assert finding["message"].startswith("NcclAllReduce")
    assert "HierarchicalCopyAllReduce()) works here" in finding["remedy"]
    assert finding["evidence"] == bad["tail"]
    assert "tail" not in report.facts["reductions"][NCCL]


def test_an_nccl_that_is_known_not_to_work_is_a_warning() -> None:
    report = all_of({COPY: right(), ONE: right(), NCCL: HUNG}, V215, unserved=True)
    assert report.status == "pass"
    assert report.findings[0]["severity"] == "warning"
    assert "known of this row: the NCCL 2.16.5" in report.findings[0]["message"]
    assert "HierarchicalCopyAllReduce()) works here" in report.findings[0]["remedy"]


def test_without_an_alternative_what_is_known_fails_too() -> None:
    report = all_of({COPY: BROKE, ONE: BROKE, NCCL: HUNG}, V215, unserved=True)
    assert [finding["severity"] for finding in report.findings] == ["error"] * 3
    assert "no all-reduce works here" in report.findings[0]["remedy"]


def test_a_wrong_sum_is_no_alternative() -> None:
    report = all_of({COPY: right(wrong_elements=[1.0, 0.0]), ONE: right(), NCCL: BROKE})
    assert "ReductionToOneDevice()) works here" in report.findings[-1]["remedy"]


def test_a_default_that_fails_where_nccl_works_names_nccl_last() -> None:
    report = all_of({COPY: BROKE, ONE: BROKE, NCCL: right(), DEFAULT: BROKE})
    assert "NcclAllReduce()) works here" in report.findings[-1]["remedy"]


def severities(call: Any, *arguments: Any) -> list[str]:
    report = Report()
    call(*arguments, report)
    return [finding["severity"] for finding in report.findings]


def test_shared_and_locked_memory() -> None:
    assert severities(multi_gpu.limits, SHM, -1, 2) == []
    assert severities(multi_gpu.limits, SMALL, -1, 2) == ["warning"]
    assert severities(multi_gpu.limits, SMALL, -1, 1) == ["info"]
    assert severities(multi_gpu.limits, None, -1, 2) == ["warning"]
    assert severities(multi_gpu.limits, SHM, 65536, 2) == ["info"]
    assert severities(multi_gpu.limits, SHM, 65536, 1) == []


def test_gpus_that_cannot_reach_each_other_are_said() -> None:
    assert severities(multi_gpu.peers, 2, lambda one, other: True) == []
    report = Report()
    multi_gpu.peers(3, lambda one, other: (one, other) != (2, 0), report)
    assert report.findings[0]["message"].startswith("1 of 6 pairs")
    assert report.facts["peers"]["without"] == [[2, 0]]
    assert severities(multi_gpu.peers, 2, lambda one, other: None) == ["info"]


def bandwidth_of(**speeds: float) -> dict[str, str]:
    names = {"copy": COPY, "one": ONE, "nccl": NCCL, "default": DEFAULT}
    report = Report()
    found = {names[name]: right(gigabytes_per_second=speed) for name, speed in speeds.items()}
    multi_gpu.bandwidth(found, "NVLink", report)
    (only,) = report.findings
    assert only["severity"] == "info"
    return only


def test_a_default_that_is_well_below_the_fastest_is_named() -> None:
    slow = bandwidth_of(copy=4.0, nccl=200.0, default=4.1)
    assert slow["message"].endswith("; what MirroredStrategy takes by itself has 2% of the fastest")
    assert slow["remedy"] == "tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.NcclAllReduce())"
    assert slow["evidence"].startswith("NVLink links: the fastest, NcclAllReduce, has at least 30 GB/s")
    measured = bandwidth_of(copy=31.8, one=29.6, nccl=33.6, default=19.9)
    assert "has 59% of the fastest" in measured["message"] and "NcclAllReduce" in measured["remedy"]
    assert bandwidth_of(copy=4.0, nccl=200.0, default=190.0)["remedy"] == ""
    assert bandwidth_of(copy=150.0, nccl=200.0)["remedy"] == "", "the default was not tried"
    both = bandwidth_of(copy=8.0, default=2.0)["remedy"]
    assert "HierarchicalCopyAllReduce()" in both and "nvidia-smi topo -m" in both


class Driver:
    def __init__(self, peer: int = 1, status: int = 0) -> None:
        self.peer, self.status = peer, status

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return 0

    def cuDeviceGet(self, handle: Any, ordinal: int) -> int:  # noqa: N802
        handle._obj.value = ordinal
        return 0

    def cuDeviceCanAccessPeer(self, answer: Any, one: Any, other: Any) -> int:  # noqa: N802
        answer._obj.value = self.peer
        return self.status


def test_the_driver_is_asked_whether_gpus_reach_each_other() -> None:
    assert multi_gpu.can_access(0, 1, load=lambda soname: Driver()) is True
    assert multi_gpu.can_access(0, 1, load=lambda soname: Driver(peer=0)) is False
    assert multi_gpu.can_access(0, 1, load=lambda soname: Driver(status=1)) is None
    assert multi_gpu.can_access(0, 1, load=lambda soname: object()) is None


def test_bandwidth_is_a_hint_beside_what_the_links_should_give() -> None:
    fast, slow = {COPY: right()}, {COPY: right(gigabytes_per_second=1.0), NCCL: HUNG}
    for found in (fast, slow):
        assert severities(multi_gpu.bandwidth, found, "NVLink") == ["info"]
    report = Report()
    multi_gpu.bandwidth(slow, "NVLink", report)
    assert (
        "NVLink links: the fastest, HierarchicalCopyAllReduce, has less than 30 GB/s"
        in (report.findings[0]["evidence"])
    )
    assert severities(multi_gpu.bandwidth, {NCCL: HUNG}, "PCIe") == []
    nvml = {"devices": [{"nvlinks": 18}, {"nvlinks": 0}]}
    assert multi_gpu.links(Context(gpu=Gpu(nvml=nvml))) == "PCIe"
    assert multi_gpu.links(Context(gpu=Gpu())) == ""


def with_parts(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> list[tuple[dict[str, Any], float]]:
    asked: list[tuple[dict[str, Any], float]] = []

    def run_part(context: Context, name: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
        asked.append((arguments, seconds))
        return dict(answers.get(arguments["reduction"].split()[-1], right()))

    monkeypatch.setattr(multi_gpu, "run_part", run_part)
    monkeypatch.setattr(multi_gpu, "can_access", lambda one, other: True)
    return asked


def gpus(count: int) -> Gpu:
    return Gpu(count=count, devices=tuple({"compute_capability": "9.0"} for _ in range(count)))


def test_each_kind_runs_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = with_parts(monkeypatch)
    report = Report()
    multi_gpu.check(Context(gpu=gpus(2)), report)
    assert [arguments["reduction"] for arguments, _ in asked] == [COPY, ONE, NCCL, DEFAULT]
    assert report.status == "pass"


def test_the_default_is_not_tried_once_nccl_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = with_parts(monkeypatch, NcclAllReduce=HUNG)
    report = Report()
    multi_gpu.check(Context(V215, gpus(2)), report)
    assert [(arguments["reduction"], seconds) for arguments, seconds in asked] == [
        (COPY, multi_gpu.SECONDS),
        (ONE, multi_gpu.SECONDS),
        (NCCL, multi_gpu.KNOWN_BAD_SECONDS),
    ]
    assert report.status == "pass"
    again = Report()
    multi_gpu.check(Context(gpu=gpus(2)), again)
    assert again.status == "fail", "nothing says that it is known"


def test_one_gpu_is_split_and_never_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = with_parts(monkeypatch)
    report = Report()
    with pytest.raises(NotRunError, match=ONE_GPU):
        multi_gpu.check(Context(gpu=gpus(1)), report)
    assert [arguments.get("logical") for arguments, _ in asked] == [2, 2]
    assert any("*logical*" in finding["message"] for finding in report.findings)
    with_parts(monkeypatch, HierarchicalCopyAllReduce=BROKE)
    broken = Report()
    with pytest.raises(NotRunError):
        multi_gpu.check(Context(gpu=gpus(1)), broken)
    assert broken.status == "fail"


def test_nccl_says_what_is_wrong_where_a_kill_does_not_lose_it() -> None:
    environ: dict[str, str] = {}
    nccl_speaks(environ)
    assert environ == {"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/dev/stderr"}
    own = {"NCCL_DEBUG": "TRACE", "NCCL_DEBUG_FILE": "/tmp/nccl.%p"}
    nccl_speaks(own)
    assert own == {"NCCL_DEBUG": "TRACE", "NCCL_DEBUG_FILE": "/tmp/nccl.%p"}
