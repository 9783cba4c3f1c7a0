"""Workers in containers of their own: what is run, what is judged, and who is named."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from meetings import cluster
from tfenv_verify import meeting
from tfenv_verify.checks import _workers, multi_worker
from tfenv_verify.checks.multi_worker import AUTO, NCCL, RING, judge, judge_all, kinds_of, ports, shares_gpu
from tfenv_verify.context import Context
from tfenv_verify.declared import Declared
from tfenv_verify.gpu import Gpu
from tfenv_verify.protocol import Report

V215 = Declared(cell="c", compiled_nccl="2.16.5", compiled_nccl_how="linked", nccl_sass=("7.0", "8.0"))
HUNG = {"failed": "had not ended after 45 s and was killed", "hung": True, "tail": "NCCL INFO"}
BROKE = {"failed": "ended with code 1: unhandled cuda error", "tail": "NCCL WARN"}
WHERE = ["a:29400", "b:29400"]


def right(**more: Any) -> dict[str, Any]:
    found = {
        "replicas": 2,
        "device": "/job:worker/replica:0/task:0/device:GPU:0",
        "weights": [0.5, 0.25],
        "one_device": [0.5, 0.25],
        "exact": [0.5, 0.25],
        "wrong_elements": 0.0,
        "elements": 100,
        "gigabytes_per_second": 1.0,
    }
    return {**found, **more}


def wrong(*answers: dict[str, Any]) -> list[str]:
    report = Report()
    judge(RING, answers, WHERE, report)
    assert all(one["severity"] == "error" and one["remedy"] for one in report.findings)
    return [one["message"] for one in report.findings]


def test_a_step_that_is_right_passes() -> None:
    assert wrong(right(), right()) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"replicas": 1}, "2 workers, but [2, 1] replicas"),
        (
            {"device": "/job:worker/replica:0/task:1/device:CPU:0"},
            "worker 1 (b:29400) computes on '/job:worker/replica:0/task:1/device:CPU:0', not on a GPU",
        ),
        (
            {"weights": [0.5, 0.26]},
            "the weights of worker 1 (b:29400) differ from those of worker 0 (a:29400)",
        ),
        ({"weights": [0.5, float("nan")]}, "the weights of worker 1 (b:29400) differ"),
        ({"exact": [0.5, 0.251]}, "of worker 1 (b:29400) differ by 0.002 from those of float64 on the CPU"),
        ({"one_device": [0.5, 0.251]}, "those of one device"),
        ({"weights": []}, "differ by inf"),
        ({"wrong_elements": 3.0}, "3 are wrong on worker 1 (b:29400)"),
        ({"wrong_elements": float("nan")}, "nan are wrong"),
    ],
)
def test_what_is_wrong_names_the_worker(more: dict[str, Any], message: str) -> None:
    said = wrong(right(), right(**more))
    assert any(message in one for one in said), said


def all_of(found: dict[str, list[dict[str, Any]]], declared: Declared, unserved: bool = False) -> Report:
    report = Report()
    judge_all(found, WHERE, unserved, Context(declared), report)
    return report


GOOD = [right(), right()]


def test_all_kinds_that_work_pass_and_the_speed_is_said() -> None:
    report = all_of({RING: GOOD, NCCL: [right(), right(gigabytes_per_second=0.5)]}, Declared())
    assert report.status == "pass"
    assert [one["message"] for one in report.findings] == [
        "bus bandwidth of an all-reduce over the workers: RING 1.00 GB/s, NCCL 0.50 GB/s"
    ]
    assert report.findings[0]["remedy"] == ""


@pytest.mark.parametrize(("speed", "named"), [(0.4, True), (0.7, True), (0.8, False)])
def test_a_default_that_is_well_below_the_fastest_is_named(speed: float, named: bool) -> None:
    auto = [right(gigabytes_per_second=speed), right(gigabytes_per_second=speed)]
    (found,) = all_of({RING: GOOD, NCCL: auto, AUTO: auto}, Declared()).findings
    assert found["severity"] == "info"
    assert ("CommunicationImplementation.RING" in found["remedy"]) == named


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([right(), BROKE], "NCCL: worker 1 (b:29400) ended with code 1: unhandled cuda error"),
        (
            [HUNG, BROKE],
            "NCCL: worker 1 (b:29400) ended with code 1: unhandled cuda error; worker 0 (a:29400) hung: it",
        ),
        (
            [HUNG, {"failed": "went away: its process or its container has ended"}],
            "worker 1 (b:29400) went away",
        ),
    ],
)
def test_an_nccl_that_fails_names_the_worker_and_what_works(
    answers: list[dict[str, Any]], message: str
) -> None:
    report = all_of({RING: GOOD, NCCL: answers}, Declared())
    finding = next(one for one in report.findings if one["severity"] == "error")
    assert message in finding["message"]
    assert "CommunicationImplementation.RING)) works here" in finding["remedy"]
    assert report.status == "fail"
    assert "tail" not in report.facts["implementations"][NCCL][1]


def test_an_nccl_that_is_known_not_to_work_is_a_warning() -> None:
    report = all_of({RING: GOOD, NCCL: [HUNG, HUNG]}, V215, unserved=True)
    assert report.status == "pass"
    assert report.findings[0]["severity"] == "warning"
    assert "known of this row: the NCCL 2.16.5" in report.findings[0]["message"]
    assert "worker 0 (a:29400):\nNCCL INFO" in report.findings[0]["evidence"]


def test_without_an_alternative_what_is_known_fails_too() -> None:
    report = all_of({RING: [BROKE, HUNG], NCCL: [HUNG, HUNG]}, V215, unserved=True)
    assert [one["severity"] for one in report.findings] == ["error"] * 2
    assert "works here" not in report.findings[0]["remedy"]


def test_a_wrong_sum_is_no_alternative() -> None:
    report = all_of(
        {RING: [right(), right(wrong_elements=1.0)], NCCL: GOOD, AUTO: [BROKE, BROKE]}, Declared()
    )
    assert "CommunicationImplementation.NCCL)) works here" in report.findings[-2]["remedy"]


def gpu(count: int, visible: str | None = None) -> Gpu:
    devices = tuple({"name": "H", "uuid": f"{n}", "compute_capability": "9.0"} for n in range(count))
    return Gpu(count=count, devices=devices, visible=visible)


def test_each_worker_takes_its_own_gpu_where_there_are_enough() -> None:
    assert [_workers.own_gpu(None, 2, index) for index in (0, 1)] == ["0", "1"]
    assert [_workers.own_gpu(None, 1, index) for index in (0, 1)] == ["0", "0"]
    assert [_workers.own_gpu("3, 5", 2, index) for index in (0, 1)] == ["3", "5"]
    assert _workers.own_gpu("GPU-a,GPU-b", 1, 1) == "GPU-a", "the second one is not seen"
    assert multi_worker.myself(Context(gpu=gpu(2), worker=1)) == {"gpu": "H", "uuid": "1"}
    assert multi_worker.myself(Context(gpu=gpu(1), worker=1)) == {"gpu": "H", "uuid": "0"}


def test_whether_they_share_one_is_told_by_its_uuid() -> None:
    one, other, silent = {"uuid": "0"}, {"uuid": "1"}, {"uuid": ""}
    assert shares_gpu([one, one], Context(gpu=gpu(1)))
    assert not shares_gpu([one, other], Context(gpu=gpu(1))), "each container was given another one"
    assert shares_gpu([silent, silent], Context(gpu=gpu(1)))
    assert not shares_gpu([silent, silent], Context(gpu=gpu(2)))
    assert not shares_gpu([silent, silent], Context(on_cpu=1))
    assert kinds_of(Context(gpu=gpu(2)), shared=False) == [RING, NCCL, AUTO]
    assert kinds_of(Context(gpu=gpu(1)), shared=True) == [RING]
    assert kinds_of(Context(on_cpu=1), shared=False) == [RING]


def test_each_round_has_ports_of_its_own() -> None:
    used = [
        address for number in range(3) for both in ports(["a:1", "b:1"], number).values() for address in both
    ]
    assert len(set(used)) == len(used) and "a:1" not in used
    assert max(meeting.split(address)[1] for address in used) < 1 + multi_worker.PORTS


def test_a_worker_is_prepared_before_tensorflow_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TF_CONFIG", "{}"), ("http_proxy", "x"), ("NCCL_DEBUG", "INFO")):
        monkeypatch.setenv(name, value)
    for name in ("NCCL_HOSTID", "NCCL_DEBUG_FILE", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    _workers.prepare(Context(gpu=gpu(2)), 1, WHERE)
    environ = os.environ
    assert json.loads(environ["TF_CONFIG"]) == {
        "cluster": {"worker": WHERE},
        "task": {"type": "worker", "index": 1},
    }
    assert "http_proxy" not in environ
    assert (environ["NCCL_DEBUG"], environ["NCCL_HOSTID"]) == ("INFO", "tfenv-worker-1")
    assert environ["NCCL_DEBUG_FILE"] == "/dev/stderr"
    assert environ["CUDA_VISIBLE_DEVICES"] == "1"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    _workers.prepare(Context(on_cpu=1), 1, WHERE)
    assert "CUDA_VISIBLE_DEVICES" not in environ


class Cluster:
    """Two workers in threads, whose parts answer what the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int = 2) -> None:
        self.where, self.count = tuple(cluster()), count
        self.asked: list[tuple[int, str, float]] = []
        self.answers: dict[tuple[int, str], Any] = {}
        self.reports = [Report(), Report()]
        monkeypatch.setattr(multi_worker, "run_part", self.part)

    def part(
        self, context: Context, name: str, task: dict[str, Any], seconds: float, stop: Callable[[], str]
    ) -> dict[str, Any]:
        self.asked.append((context.worker, task["implementation"], seconds))
        answer = self.answers.get((context.worker, task["implementation"]), right())
        return dict(answer(stop) if callable(answer) else answer)

    def run(self, declared: Declared | None = None) -> tuple[Report, Report]:
        contexts = [
            Context(declared or Declared(), gpu(self.count), worker=index, cluster=self.where)
            for index in (0, 1)
        ]
        other = threading.Thread(target=multi_worker.check, args=(contexts[1], self.reports[1]), daemon=True)
        other.start()
        multi_worker.check(contexts[0], self.reports[0])
        other.join(20)
        assert not other.is_alive()
        return self.reports[0], self.reports[1]


def test_two_workers_run_every_kind_and_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Cluster(monkeypatch)
    first, second = both.run()
    assert (first.status, second.status) == ("pass", "pass") and first.findings == second.findings
    assert sorted((index, kind) for index, kind, _ in both.asked) == [
        (index, kind) for index in (0, 1) for kind in sorted((RING, NCCL, AUTO))
    ]
    assert first.facts["shared"] is False
    assert [one["gpu"] for one in first.facts["workers"]] == ["H", "H"]
    assert "uuid" not in str(first.facts), "reports are published"


def test_one_gpu_is_shared_over_ring_alone_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Cluster(monkeypatch, count=1)
    first, second = both.run()
    assert {kind for _, kind, _ in both.asked} == {RING}
    assert first.facts["shared"] is True and first.status == second.status == "pass"
    assert any("*shared* one GPU" in one["message"] for one in first.findings)


def test_an_nccl_that_fails_ends_with_what_works_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Cluster(monkeypatch)
    both.answers[1, NCCL] = BROKE
    first, second = both.run()
    assert first.status == second.status == "fail" and first.findings == second.findings
    assert AUTO not in {kind for _, kind, _ in both.asked}
    again = Cluster(monkeypatch)
    again.answers[0, NCCL] = again.answers[1, NCCL] = HUNG
    assert again.run(V215)[0].status == "pass"
    assert {s for _, kind, s in again.asked if kind == NCCL} == {multi_worker.KNOWN_BAD_SECONDS}
    assert {s for _, kind, s in again.asked if kind == RING} == {multi_worker.FIRST_SECONDS}


def test_a_worker_that_dies_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Cluster(monkeypatch)
    context = Context(gpu=gpu(2), worker=1, cluster=both.where)

    def dies() -> None:
        with meeting.join(both.where, 1, multi_worker.myself(context), 20) as line:
            line.receive(20)

    thread = threading.Thread(target=dies, daemon=True)
    thread.start()
    report = Report()
    multi_worker.check(Context(gpu=gpu(2), cluster=both.where), report)
    thread.join(20)
    (finding,) = report.findings
    assert (
        f"worker 1 ({both.where[1]}) went away: its process or its container has ended" in finding["message"]
    )
    assert [kind for _, kind, _ in both.asked] == [RING], "no more is tried"


def test_a_worker_that_never_comes_is_named_by_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_worker, "MEET_SECONDS", 0.3)
    where = tuple(cluster())
    report, other = Report(), Report()
    multi_worker.check(Context(gpu=gpu(1), cluster=where), report)
    assert f"worker 1 ({where[1]}) did not come" in report.findings[0]["message"]
    multi_worker.check(Context(gpu=gpu(1), worker=1, cluster=where), other)
    assert f"worker 0 ({where[0]}) could not be reached" in other.findings[0]["message"]
    assert report.status == other.status == "fail"


def test_a_first_worker_that_dies_is_named_by_the_other() -> None:
    where = tuple(cluster())
    report = Report()

    def dies() -> None:
        with meeting.hold(where, 20):
            pass

    thread = threading.Thread(target=dies, daemon=True)
    thread.start()
    multi_worker.check(Context(gpu=gpu(2), worker=1, cluster=where), report)
    thread.join(20)
    assert f"worker 0 ({where[0]}) went away" in report.findings[0]["message"]


def test_an_address_that_is_taken_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    where = tuple(cluster())
    report = Report()
    with socket.socket() as taken:
        taken.bind(meeting.split(where[0]))
        taken.listen()
        multi_worker.check(Context(gpu=gpu(2), cluster=where), report)
    assert "cannot listen" in report.findings[0]["message"] and "free ports" in report.findings[0]["remedy"]


def until_stopped(stop: Callable[[], str]) -> dict[str, Any]:
    """As a part that waits for another for ever."""
    for _ in range(2000):
        why = stop()
        if why:
            return {"failed": f"was ended after 1 s: {why}", "stopped": True, "tail": "waits"}
        threading.Event().wait(0.01)
    raise AssertionError("nobody said why")


@pytest.mark.parametrize(("dies", "waits"), [(0, 1), (1, 0)])
def test_who_waits_for_one_that_failed_is_ended(
    monkeypatch: pytest.MonkeyPatch, dies: int, waits: int
) -> None:
    monkeypatch.setattr(multi_worker, "GRACE_SECONDS", 0.0)
    both = Cluster(monkeypatch, count=1)
    both.answers[dies, RING], both.answers[waits, RING] = BROKE, until_stopped
    first, second = both.run()
    assert first.findings == second.findings and first.status == "fail"
    where = both.where
    assert first.findings[0]["message"] == (
        f"RING: worker {dies} ({where[dies]}) {BROKE['failed']}; worker {waits} ({where[waits]}) "
        f"was ended after 1 s: worker {dies} ({where[dies]}) had failed"
    )


def test_one_that_has_another_to_wait_for_gets_some_seconds() -> None:
    now = [0.0]

    class Gone:
        def heard(self) -> dict[str, Any]:
            raise meeting.LostError("went away")

    class Quiet:
        def heard(self) -> dict[str, Any] | None:
            return right() if now[0] else None

    watch = multi_worker.Watch({1: Gone()}, WHERE, lambda: now[0])  # type: ignore[dict-item]
    assert watch() == ""
    now[0] = multi_worker.GRACE_SECONDS
    assert watch() == "worker 1 (b:29400) went away"
    quiet = multi_worker.Watch({1: Quiet()}, WHERE, lambda: 1e9)  # type: ignore[dict-item]
    assert quiet() == quiet() == ""
    now[0] = 0.0
    assert quiet() == "", "one that is done is not waited for"
