"""Which GPUs are asked for, and what that is for each who gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tfenv.container.gpus import device_request
from tfenv.engine import Completed, Engine
from tfenv.errors import NotReadyError
from tfenv.given_gpus import count, dockers, given, names, parse, smi_option, steering, there
from tfenv.verify import host_facts


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("auto", "auto"),
        ("all", "all"),
        ("none", "none"),
        ("2", "2"),
        ("0,1", "device=0,1"),
        ("device=0", "device=0"),
        ("GPU-1a-2b", "device=GPU-1a-2b"),
        ("MIG-1a/2/0,3", "device=MIG-1a/2/0,3"),
        ("0, 1", "device=0,1"),
        ('"device=0,1"', "device=0,1"),
        ("", None),
        ("0,0", None),
        ("00,0", None),
        ("2.5", None),
        ("\u0662", None),
        ("0", None),
        ("-1", None),
        ("device=", None),
        ("0,", None),
        ("every", None),
        ("0;reboot", None),
    ],
)
def test_which_gpus(text: str, wanted: str | None) -> None:
    assert parse(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["all", "2", "count=2", "device=0", '"device=0,1"', '"device=0,1",capabilities=compute', "driver=nvidia",
     "all,capabilities=utility", 'all,"capabilities=compute,utility"', "device=GPU-1a", "device=0:1",
     "device=nvidia.com/gpu=0", "all,options=a=b"],
)  # fmt: skip
def test_what_docker_takes(text: str) -> None:
    assert dockers(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "foo", "2,2", "all,2", "0", "-2", "2.5", "device=0,1", '"device=0,1', '"device=0,0"', "device=",
     "devices=0", "count=2,device=0", "count=some", "all,capabilities=", "all,", "device=0\nx", "device=0;x"],
)  # fmt: skip
def test_what_docker_would_not_take(text: str) -> None:
    assert dockers(text) is None


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [(True, None), ("all", None), (False, ""), ("none", ""), ("2", "0,1"), ("0,1", "0,1"), ("device=1", "1")],
)
def test_gpus_become_a_list(gpus: bool | str, expected: str | None) -> None:
    assert names(gpus) == expected


def test_what_a_container_and_nvidia_smi_are_told_of_them() -> None:
    assert [given(one) for one in (None, "all", "2", "device=0,1")] == [False, True, "2", "device=0,1"]
    assert smi_option(True) == smi_option("all") == []
    assert smi_option("2") == ["-i", "0,1"] and smi_option("device=1,3") == ["-i", "1,3"]
    asked: list[tuple[str, ...]] = []

    def run(argv: Any) -> Completed:
        asked.append(tuple(argv))
        return Completed(0, "H, 580\n", "")

    assert host_facts(run, Engine(), gpus="device=1").gpus == ("H",)
    assert asked[0][-2:] == ("-i", "1")
    assert host_facts(run, Engine(), gpus=False).gpus == ()


def test_cuda_numbers_them_as_nvidia_smi_does() -> None:
    assert steering("device=1") == {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert [steering(gpus) for gpus in (True, False)] == [{}, {"CUDA_VISIBLE_DEVICES": ""}]


@pytest.mark.parametrize("text", ["2", "0,1", "device=0", "GPU-1a"])
def test_the_engine_is_asked_for_the_same(text: str) -> None:
    gpus = parse(text)
    assert gpus is not None
    request = device_request(gpus)
    assert request.get("count", 0) == (2 if text == "2" else 0)
    assert request.get("device_ids") == (None if text == "2" else str(names(gpus)).split(","))


def smi(indices: str, code: int = 0) -> Callable[[Any], Completed]:
    return lambda argv: Completed(code, indices, "")


@pytest.mark.parametrize(
    ("gpus", "said", "found"),
    [
        (True, "", True),
        (False, "", False),
        ("2", "0\n1\n", "device=0,1"),
        ("device=3,1", "1\n3\n", "device=3,1"),
        ("device=GPU-a", "2\n", "device=2"),
        ("device=MIG-a", "", "device=MIG-a"),
    ],
)
def test_chosen_gpus_are_here_and_have_numbers(gpus: bool | str, said: str, found: bool | str) -> None:
    assert there(gpus, smi(said)) == found


@pytest.mark.parametrize(
    ("gpus", "said", "code"),
    [("2", "0\n", 0), ("device=7", "No devices were found\n", 6), ("device=GPU-a", "No such\n", 0)],
)
def test_gpus_that_are_not_here_are_named(gpus: str, said: str, code: int) -> None:
    with pytest.raises(NotReadyError, match="does not have the GPUs") as caught:
        there(gpus, smi(said, code))
    assert "nvidia-smi -L" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("gpus", "number"),
    [
        ("none", 0),
        ("1", 1),
        ("16", 16),
        ("device=0", 1),
        ("device=0,3", 2),
        ("device=GPU-1,GPU-2", 2),
        ("all", None),
        ("auto", None),
        ("device=MIG-1,MIG-2", None),
    ],
)
def test_how_many_are_given_where_that_is_said(gpus: str, number: int | None) -> None:
    assert count(gpus) == number
