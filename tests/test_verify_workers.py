"""The suite ``workers`` from the host's side: two containers or processes, of which nothing stays."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker.errors
import pytest
from tfenv.container import Bind, Containers, Ended, Output, ProgramMissingError, Spec, connect
from tfenv.container.gpus import device_request
from tfenv.container.network import Networks
from tfenv.errors import NotReadyError
from tfenv.report import Host, Report
from tfenv.verify import Job, Outcome, Plan, in_network, on_loopback, verify_image
from tfenv.verify import workers as module
from tfenv.verify.workers import WORKERS, free_ports, joined

DIGEST = "sha256:" + "ab" * 32


def events(verdict: str = "pass", status: str = "pass", **more: Any) -> list[dict[str, Any]]:
    check = {"event": "check", "name": "multi_worker", "status": status, "seconds": 1.0, **more}
    return [
        {"event": "start", "checks": [{"name": "multi_worker"}]},
        check,
        {"event": "end", "verdict": verdict, "facts": {}},
    ]


@dataclass
class Worker:
    """A container of one worker: what it prints, how it ends, and whether it goes on until it is ended."""

    said: list[dict[str, Any]] = field(default_factory=events)
    ended: Ended = field(default_factory=lambda: Ended(0))
    stays: bool = False
    missing: bool = False
    broken: Exception | None = None
    specs: list[Spec] = field(default_factory=list)
    removed: int = 0
    killed: threading.Event = field(default_factory=threading.Event)
    meets: threading.Barrier | None = None

    @contextmanager
    def start(self, spec: Spec) -> Iterator[Worker]:
        self.specs.append(spec)
        if self.missing and spec.entrypoint[0] == "timeout":
            raise ProgramMissingError("no timeout", remedy="r")
        try:
            yield self
        finally:
            self.removed += 1

    def output(self) -> Iterator[Output]:
        if self.broken:
            raise self.broken
        if self.meets:
            self.meets.wait(20)
        for event in self.said:
            yield json.dumps(event).encode() + b"\n", b"said\n"
        if self.stays:
            assert self.killed.wait(20)

    def wait(self) -> Ended:
        return self.ended

    def kill(self) -> None:
        self.killed.set()


@dataclass
class Net:
    made: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @contextmanager
    def network(self, purpose: str) -> Iterator[str]:
        self.made.append(purpose)
        try:
            yield f"net-{purpose}"
        finally:
            self.removed.append(purpose)


def verified(first: Worker, second: Worker, net: Net | None = None, **more: Any) -> Report:
    runner = in_network([first.start, second.start], (net or Net()).network)
    plan = Plan(names=("multi_worker",), accepted={}, limit=900)
    return verify_image(
        "tfenv:x",
        {},
        digest=DIGEST,
        host=Host(gpus=("H",)),
        runner=runner,
        suite="workers",
        gpus=True,
        packed=b"zip",
        plan_of=lambda packed, suite: plan,
        **more,
    )


def test_both_run_at_once_in_a_network_of_their_own() -> None:
    both = threading.Barrier(2)
    first, second, net = Worker(meets=both), Worker(meets=both), Net()
    seen: list[str] = []
    report = verified(first, second, net, more=("--expect-gpus", "2"), on_check=lambda c: seen.append(c.name))
    assert (report.verdict, report.suite, seen) == ("pass", "workers", ["multi_worker"])
    assert net.made == net.removed == ["workers"]
    for index, worker in enumerate((first, second)):
        (spec,) = worker.specs
        assert (spec.network, spec.aliases, worker.removed) == ("net-workers", (f"worker-{index}",), 1)
        line = " ".join(spec.command)
        assert "--suite workers --expect-gpus 2 --cluster worker-0:29400,worker-1:29400" in line
        assert line.endswith(f"--worker {index}") and spec.gpus is True


def test_an_image_without_timeout_runs_too() -> None:
    first, second = Worker(missing=True), Worker(missing=True)
    assert verified(first, second).verdict == "pass"
    assert [spec.entrypoint for spec in second.specs] == [("timeout",), ("timeout",), ("python",)]


def test_a_worker_that_dies_is_named_with_its_end() -> None:
    report = verified(Worker(events("fail", "fail"), Ended(1)), Worker([], Ended(137, out_of_memory=True)))
    (_, broken) = report.checks
    assert (report.verdict, broken.name) == ("fail", "worker 1")
    assert broken.findings[0].message == "worker 1: the kernel ended the suite: out of memory"
    assert "said" not in broken.findings[0].evidence


def test_a_pass_of_the_first_alone_is_none() -> None:
    alone = verified(Worker(), Worker([], Ended(139)))
    assert alone.verdict == "fail" and "exit status 139" in alone.checks[-1].findings[0].message
    other = verified(Worker(), Worker(events("fail", "fail"), Ended(1)))
    assert (other.verdict, other.checks[-1].name) == ("fail", "multi_worker, worker 1")
    less = verified(Worker(), Worker(events("unverified", "not-run", reason="no GPU"), Ended(3)))
    assert less.verdict == "fail"
    assert less.checks[-1].findings[0].message == "worker 1: it says unverified, worker 0 says pass"
    lies = verified(Worker(), Worker(events(), Ended(1)))
    assert lies.verdict == "fail" and "ended with exit status 1" in lies.checks[-1].findings[0].message


def test_without_a_gpu_both_say_so_and_nothing_is_verified() -> None:
    said = events("unverified", "not-run", reason="no GPU")
    report = verified(Worker(said, Ended(3)), Worker(said, Ended(3)))
    assert (report.verdict, report.reason, report.exit_code) == ("unverified", "no GPU", 3)


def test_a_first_worker_that_breaks_off_fails() -> None:
    report = verified(Worker([], Ended(139)), Worker(events("fail", "fail"), Ended(1)))
    assert report.verdict == "fail" and report.checks[-1].name == "suite"


def test_a_second_worker_that_cannot_be_started_fails() -> None:
    report = verified(Worker(), Worker(broken=NotReadyError("the engine is gone", remedy="r")))
    assert report.verdict == "fail"
    assert "the engine is gone" in report.checks[-1].findings[0].evidence


@pytest.mark.parametrize("error", [KeyboardInterrupt(), NotReadyError("no engine", remedy="r")])
def test_whatever_ends_the_first_ends_the_other_and_the_network(error: BaseException) -> None:
    second, net = Worker([], Ended(137), stays=True), Net()
    first = Worker()

    def interrupted() -> Iterator[Output]:
        while not second.specs:  # it has been started
            threading.Event().wait(0.01)
        raise error
        yield b"", b""

    first.output = interrupted  # type: ignore[method-assign]
    with pytest.raises(type(error)):
        verified(first, second, net)
    assert second.killed.is_set() and second.removed == first.removed == 1
    assert net.removed == ["workers"]


def test_a_worker_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAVE_SECONDS", 0.2)
    second = Worker([], Ended(137), stays=True)
    report = verified(Worker(), second)
    assert second.killed.is_set() and report.verdict == "fail"


def test_without_containers_they_are_processes_of_this_host() -> None:
    one = Worker()
    job = Job(Spec(image="x"), "workers", 10, (), lambda _check: None)
    outcome, ended, _ = on_loopback(one.start, free=lambda count: 20000)(job)
    assert (outcome.verdict, ended.status) == ("pass", 0)
    lines = sorted(" ".join(spec.command) for spec in one.specs)
    assert [line[-50:] for line in lines] == [
        f"--cluster 127.0.0.1:20000,127.0.0.1:20008 --worker {index}"[-50:] for index in (0, 1)
    ]
    assert {spec.network for spec in one.specs} == {"none"}


def test_ports_that_somebody_has_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_ports(2)
    assert 20000 <= first < 32000
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr("random.randrange", lambda low, high: port - 1)
        with pytest.raises(NotReadyError, match="no 2 ports in a row"):
            free_ports(2, tries=3)


def test_what_others_say_is_joined_only_where_it_differs() -> None:
    good = (Outcome(verdict="pass"), Ended(0), "")
    assert joined(good, [good], 10) is good
    silent = (Outcome(), Ended(1), "")
    assert joined(silent, [good], 10) is silent, "the first one's end is judged by itself"
    assert WORKERS == 2


# The engine's side.


@pytest.mark.parametrize(
    ("gpus", "wanted"),
    [
        (True, {"count": -1}),
        ("all", {"count": -1}),
        ("2", {"count": 2}),
        ("device=0,1", {"device_ids": ["0", "1"]}),
        ("0,1", {"device_ids": ["0", "1"]}),
        ("device=GPU-a", {"device_ids": ["GPU-a"]}),
    ],
)
def test_gpus_in_the_engines_words(gpus: bool | str, wanted: dict[str, Any]) -> None:
    assert device_request(gpus) == {"capabilities": [["gpu"]], **wanted}


def config_of(spec: Spec) -> dict[str, Any]:
    api = docker.APIClient(version="1.44")
    return Containers(api)._config(spec)


def test_a_container_gets_its_name_in_its_network_and_its_gpus() -> None:
    config = config_of(Spec(image="x", network="n", aliases=("worker-0",), gpus="device=1"))
    ends = config["networking_config"]["EndpointsConfig"]
    assert ends == {"n": {"Aliases": ["worker-0"]}}
    assert config["host_config"]["NetworkMode"] == "n"
    assert config["host_config"]["DeviceRequests"][0]["DeviceIDs"] == ["1"]
    plain = config_of(Spec(image="x", binds=(Bind(Path("/"), "/t"),)))
    assert "networking_config" not in plain and "DeviceRequests" not in plain["host_config"]


class Api:
    """An engine's networks."""

    def __init__(self, busy: int = 0) -> None:
        self.networks: dict[str, dict[str, Any]] = {}
        self.busy = busy

    def create_network(self, name: str, **more: Any) -> None:
        self.networks[name] = more

    def remove_network(self, name: str) -> None:
        if self.busy:
            self.busy -= 1
            raise docker.errors.APIError("x", explanation="network has active endpoints")
        if name not in self.networks:
            raise docker.errors.NotFound("no such network")
        del self.networks[name]


def networks(api: Api) -> Networks:
    made = Networks()
    made._api = api
    return made


def test_a_network_has_no_way_out_and_goes_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    api = Api(busy=2)

    def inside() -> None:
        with networks(api).network("workers") as name:
            assert name.startswith("tfenv-workers-") and api.networks[name]["internal"] is True
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inside()
    assert api.networks == {}
    with networks(api).network("workers"):
        api.networks.clear()  # somebody else removed it


@pytest.mark.engine
def test_a_real_network_is_made_and_removed() -> None:
    with connect() as containers:
        with containers.network("test") as name:
            (found,) = containers._api.networks(names=[name])
            assert found["Internal"] is True
        assert not containers._api.networks(names=[name])
