"""The doctor on recorded hosts: each condition is found, its look-alikes are not, blame stops in time."""

from __future__ import annotations

from typing import Any

import pytest
from doctor_fakes import bases, conditions, every, host
from tfenv.doctor.evidence import Evidence, dump, load
from tfenv.doctor.findings import FindingError, checked, findings
from tfenv.doctor.judging import Verdict, judge
from tfenv.doctor.reading import PROBES, values
from tfenv.doctor.rows import Rows
from tfenv.doctor.scrub import Scrubber, scrubbed
from tfenv.doctor.telling import text

CONDITIONS = conditions()


def verdict(evidence: Evidence) -> Verdict:
    return judge(values(evidence))


def ids(evidence: Evidence) -> list[str]:
    return [one.id for one in verdict(evidence).found]


@pytest.mark.parametrize("row", CONDITIONS, ids=lambda row: row["name"])
def test_condition(row: dict[str, Any]) -> None:
    told = verdict(host(row["base"], row))
    found = [one.id for one in told.found]
    assert found[:1] == row["finds"][:1]
    assert set(row["finds"]) <= set(found)
    assert told.code == row["code"]
    assert all("?" not in f"{one.title}{one.remedy}" and "{" not in one.title for one in told.found)


@pytest.mark.parametrize("row", CONDITIONS, ids=lambda row: row["name"])
def test_what_is_unlike_it(row: dict[str, Any]) -> None:
    assert row["unlike"]
    for other in row["unlike"]:
        assert row["finds"][0] not in ids(host(row["base"], row, other)), other


@pytest.mark.parametrize("base", ["server", "workstation", "wsl"])
def test_nothing_is_found_where_all_is_well(base: str) -> None:
    told = verdict(host(base))
    assert [one.id for one in told.found] == []
    assert {layer.state for layer in told.layers} == {"ok"}
    assert told.code == 0


def test_every_finding_has_a_host_with_it() -> None:
    shown = {name for row in CONDITIONS for name in row["finds"]}
    assert {one.id for one in findings()} - shown == set()


def test_findings_ask_for_values_that_a_probe_gives() -> None:
    given: set[str] = set()
    for _, evidence in every():
        for probe in PROBES:
            given |= probe(evidence).keys()
        given |= values(evidence).keys()
    asked = {name for one in findings() for name in one.names}
    assert asked - given == set()


def test_blame_stops_at_the_first_broken_layer() -> None:
    told = verdict(host("server", next(row for row in CONDITIONS if row["finds"] == ["driver-needs-reboot"])))
    states = {layer.name: layer.state for layer in told.layers}
    assert states == {
        "hardware": "ok",
        "driver": "broken",
        "devices": "skipped",
        "state": "skipped",
        "engine": "ok",
        "toolkit": "skipped",
        "limits": "ok",
        "network": "ok",
    }
    assert next(layer for layer in told.layers if layer.name == "toolkit").because == "first the driver"


@pytest.mark.parametrize("row", CONDITIONS, ids=lambda row: row["name"])
def test_a_recording_gives_the_same_verdict(row: dict[str, Any]) -> None:
    evidence = host(row["base"], row)
    scrubber = Scrubber(names=("user", "lcy02"), home="/home/somebody")
    again = load(dump(scrubbed(evidence, scrubber)))
    assert ids(again) == ids(evidence)
    assert verdict(again).code == verdict(evidence).code


@pytest.mark.parametrize("base", bases())
def test_the_text_is_short(base: str) -> None:
    said = text(verdict(host(base)), Rows())
    assert len(said.splitlines()) < 40
    assert all(len(line) <= 130 for line in said.splitlines())


def test_an_empty_evidence_is_unknown() -> None:
    told = verdict(Evidence())
    assert told.code == 4  # no docker client was found, and nothing else was seen
    assert {layer.name for layer in told.layers if layer.state == "unknown"} >= {"hardware"}


ENTRY: dict[str, Any] = {
    "id": "x",
    "layer": "driver",
    "grade": "limit",
    "title": "t {module_version}",
    "cause": "c",
    "remedy": "r",
    "source": "NVIDIA/nvidia-docker#1",
    "when": ["known module_version"],
}


def test_an_entry_is_a_finding() -> None:
    assert checked(ENTRY, "driver").link == "https://github.com/NVIDIA/nvidia-docker/issues/1"


@pytest.mark.parametrize(
    "change",
    [
        {"id": "X Y"},
        {"layer": "engine"},
        {"grade": "bad"},
        {"source": "somewhere"},
        {"when": []},
        {"when": ["no condition"]},
        {"title": "t {other}"},
        {"extra": "key"},
        {"cause": ""},
    ],
)
def test_an_entry_that_is_none(change: dict[str, Any]) -> None:
    with pytest.raises(FindingError):
        checked({**ENTRY, **change}, "driver")
