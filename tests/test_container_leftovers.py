from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import docker.errors
import pytest
import requests
from tfenv.container.leftovers import LABEL, is_gone, owner, remove_leftovers, started

ME = "boot pid:[1] 10 500"


def test_a_process_is_known_by_boot_namespace_number_and_start() -> None:
    boot, namespace, pid, when = owner().split()
    assert (pid, when) == (str(os.getpid()), started(os.getpid())) and boot and namespace
    assert not is_gone(owner(), owner())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        label = f"{boot} {namespace} {other.pid} {started(other.pid)}"
        assert not is_gone(label, owner())
        other.communicate(b"\n")
    assert is_gone(label, owner()) and started(2**22 + 1) is None


@pytest.mark.parametrize(
    ("label", "gone"),
    [
        ("boot pid:[1] 20 500", True),  # no such process
        ("boot pid:[1] 30 500", True),  # another one has its number
        ("boot pid:[1] 30 700", False),
        (ME, False),
        ("other pid:[1] 20 500", False),  # of another machine, or from before it was started anew
        ("boot pid:[2] 20 500", False),  # its numbers are others
        ("boot pid:[1] 20", False),
        ("boot pid:[1] x 500", False),
        ("", False),
    ],
)
def test_only_who_is_known_to_have_ended_is_gone(label: str, gone: bool) -> None:
    assert is_gone(label, ME, {10: "500", 30: "700"}.get) == gone


class Api:
    """An engine with two containers and a network, of those that are named."""

    def __init__(self, *labels: str, trouble: Exception | None = None) -> None:
        self.all = [{"Id": f"c{n}", "Labels": {LABEL: label}} for n, label in enumerate(labels)]
        self.trouble, self.removed = trouble, list[str]()

    def containers(self, **asked: Any) -> list[dict[str, Any]]:
        assert asked == {"all": True, "filters": {"label": LABEL}}
        if self.trouble:
            raise self.trouble
        return self.all

    def networks(self, **asked: Any) -> list[dict[str, Any]]:
        return [{**one, "Id": f"n{one['Id']}"} for one in self.all]

    def remove_container(self, name: str, **_: Any) -> None:
        self.removed.append(name)
        raise docker.errors.NotFound("gone already")

    def remove_network(self, name: str) -> None:
        self.removed.append(name)


def test_what_a_killed_one_left_is_removed_and_nothing_else() -> None:
    ended = " ".join([*owner().split()[:2], str(2**22 + 1), "5"])
    api = Api(ended, owner(), "of somebody else")
    remove_leftovers(api)
    assert api.removed == ["c0", "nc0"]


@pytest.mark.parametrize("trouble", [docker.errors.APIError("x"), requests.ConnectionError("x")])
def test_an_engine_that_does_not_tell_is_no_reason_to_stop(trouble: Exception) -> None:
    remove_leftovers(Api(trouble=trouble))
