"""Two containers of the image train together; the CPU stands in for their GPUs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from client import Image
from faults import check_of
from tfenv.container import Containers, Running, Spec
from tfenv.report import Host, Report
from tfenv.verify import on_engine, verify_image

pytestmark = pytest.mark.image


def workers(image: Image, *more: str) -> Report:
    """The suite, with these arguments, in two containers of the image."""
    with on_engine(os.environ, "workers") as (_, runner):
        return verify_image(
            image.id, {}, digest=image.id, host=Host(), runner=runner, suite="workers", more=more
        )


def leftovers(containers: Containers) -> list[str]:
    """Networks that were made for workers."""
    return [str(found["Name"]) for found in containers._api.networks(filters={"label": "tfenv=workers"})]


def test_two_containers_agree_and_nothing_of_them_stays(image: Image, containers: Containers) -> None:
    report = workers(image, "--on-cpu", "1")
    trained = check_of(report, "multi_worker")
    assert (report.verdict, report.reason) == ("unverified", "the CPU stood in for GPUs")
    assert trained.status == "pass", trained.findings
    (answers,) = trained.facts["implementations"].values()
    assert [one["wrong_elements"] for one in answers] == [0, 0]
    assert answers[0]["weights"] == answers[1]["weights"]
    assert [one["device"][-26:] for one in answers] == [
        "replica:0/task:0/device:CPU:0"[-26:],
        "replica:0/task:1/device:CPU:0"[-26:],
    ]
    assert leftovers(containers) == []


def test_without_a_gpu_they_verify_nothing(image: Image, containers: Containers) -> None:
    report = workers(image)
    assert (report.verdict, report.reason, report.exit_code) == ("unverified", "no GPU", 3)
    assert {check.status for check in report.checks} == {"not-run"}
    assert leftovers(containers) == []


class KilledAt:
    """A running container that is killed once it has said ``word``."""

    def __init__(self, running: Running, word: bytes) -> None:
        self._running, self._word = running, word

    def __getattr__(self, name: str) -> Any:
        return getattr(self._running, name)

    def output(self) -> Iterator[tuple[bytes, bytes]]:
        said = b""
        for out, err in self._running.output():
            said += err
            if self._word in said:
                self._running.kill()
            yield out, err


def test_a_container_that_is_killed_is_named(
    image: Image, containers: Containers, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = containers.container

    @contextmanager
    def watched(self: Containers, spec: Spec) -> Iterator[Any]:
        with started.__func__(self, spec) as running:  # type: ignore[attr-defined]
            # It says so before it imports TensorFlow: it has not trained by then.
            yield KilledAt(running, b"multi_worker: RING") if "worker-1" in spec.aliases else running

    monkeypatch.setattr(Containers, "container", watched)
    report = workers(image, "--on-cpu", "1")
    said = [finding.message for check in report.checks for finding in check.findings]
    assert report.verdict == "fail"
    assert any("worker 1 (worker-1:29400) went away" in one or "worker 1: " in one for one in said), said
    assert report.seconds < 90, "TensorFlow itself would wait for ever"
    assert leftovers(containers) == []
