"""Of the host's GPUs, those that a run was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tfenv.load import events_of, judge, stress_of
from tfenv.load.given import of_given

LINES = events_of((Path(__file__).parent / "fixtures/load/stress.jsonl").read_text())
NVML = [{"event": kind, "gpu": gpu} for kind in ("gpu", "sample", "errors", "xid") for gpu in (0, 1, 2)]
OWN = [{"event": "progress", "gpu": 0}, {"event": "xid", "gpu": -1, "pci": "0000:1b:00"}, {"event": "end"}]


def given(visible: Any) -> list[tuple[str, Any]]:
    start = {"event": "start", "environment": {"CUDA_VISIBLE_DEVICES": visible}}
    found = of_given([*NVML, *OWN], start)
    return [(event["event"], event.get("gpu")) for event in found]


def test_others_are_left_out_and_numbers_are_those_of_tensorflow() -> None:
    kinds = ("gpu", "sample", "errors", "xid")
    own = [("progress", 0), ("xid", -1), ("end", None)]
    assert given("2") == [*((kind, 0) for kind in kinds), *own]
    assert given("2,0") == [(kind, gpu) for kind in kinds for gpu in (1, 0)] + own


@pytest.mark.parametrize("visible", [None, "", "GPU-1a", "0,", "\u0662", 2.5, "all"])
def test_where_they_have_no_numbers_nothing_is_left_out(visible: Any) -> None:
    assert len(given(visible)) == len(NVML) + len(OWN)


@pytest.mark.parametrize("start", [{}, {"environment": None}, {"environment": ["x"]}])
def test_a_start_that_says_nothing(start: dict[str, Any]) -> None:
    assert of_given(NVML, start) == NVML


def test_an_idle_neighbour_is_no_part_of_the_verdict() -> None:
    start, *rest = LINES
    start = {**start, "environment": {"CUDA_VISIBLE_DEVICES": "1"}}
    watched = [event for event in rest if event["event"] in ("gpu", "sample", "errors", "xid")]
    others = [event for event in rest if event not in watched]
    found = stress_of([start, *watched, *({**event, "gpu": 1} for event in watched), *others])
    alone = stress_of(LINES)
    assert (found.gpus, found.samples, found.xids) == (alone.gpus, alone.samples, alone.xids)
    assert judge(found).checks == judge(alone).checks
