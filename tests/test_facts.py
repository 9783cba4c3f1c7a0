"""Facts have sources, and the decisions that follow from them are the right ones."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import made_up
from tfenv import factfiles, facts
from tfenv.errors import UsageError
from tfenv.facts import Floor, Ptx
from tfenv.matrix import load_matrix
from tfenv.resources import facts_dir
from tfenv.versions import agrees, is_final, major, minor, order

MATRIX = load_matrix(Path(__file__).resolve().parent.parent / "matrix.yaml")


def _data(name: str) -> Any:
    return json.loads((facts_dir() / f"{name}.json").read_text(encoding="utf-8"))


# --- versions --------------------------------------------------------------------------------------


def test_versions_are_compared_as_versions() -> None:
    assert order("2.9.3") < order("2.15.0") < order("2.15.0.post1") < order("2.15.1") < order("2.15.10")
    assert order("2.22.0rc0") < order("2.22.0")
    assert (minor("2.15.0.post1"), minor("2.22.0rc0"), major("12.2")) == ("2.15", "2.22", "12")
    assert is_final("2.15.0.post1")
    assert not is_final("2.22.0rc0")


@pytest.mark.parametrize(
    ("declared", "exact", "answer"),
    [("8.9", "8.9.4", True), ("12.2", "12.2", True), ("8.9", "8.90.1", False), ("12.5.1", "12.5", False)],
)
def test_agrees(declared: str, exact: str, answer: bool) -> None:
    assert agrees(declared, exact) is answer


# --- the data --------------------------------------------------------------------------------------


def test_every_fact_of_a_release_says_how_it_was_read() -> None:
    for release, entry in _data("tensorflow").items():
        assert set(entry["source"]) == set(entry) - {"source"}, release
        assert all(len(source) > 20 for source in entry["source"].values())


def test_every_library_says_why_and_whence() -> None:
    entries = [e for kind in _data("libraries").values() for some in kind.values() for e in some]
    assert all(len(e["why"]) > 10 and len(e["source"]) > 20 for e in entries)


def test_every_table_of_drivers_has_a_source() -> None:
    for name, table in _data("drivers").items():
        assert table["source"].startswith("https://docs.nvidia.com/"), name
        assert set(table) > {"source"}


def test_newer_cuda_never_needs_an_older_driver() -> None:
    rows = _data("drivers")["toolkit"]["rows"]
    drivers = [order(rows[cuda]["GA"]) for cuda in sorted(rows, key=order)]
    assert drivers == sorted(drivers)
    for updates in rows.values():
        assert [order(d) for d in updates.values()] == sorted(order(d) for d in updates.values())


def test_newer_ptx_never_needs_an_older_cuda() -> None:
    rows = _data("drivers")["ptx"]["rows"]
    first = [order(rows[isa]) for isa in sorted(rows, key=order)]
    assert first == sorted(first)


def test_every_ptx_of_a_release_has_a_driver() -> None:
    for release in facts.releases():
        found = facts.compiled(release)
        assert facts.floors(found, found.cuda)


# --- compiled for ----------------------------------------------------------------------------------


def test_what_2_15_1_was_compiled_for() -> None:
    found = facts.compiled("2.15.1")
    assert (found.cuda, found.cudnn) == ("12.2", "8.9.4")
    assert (found.nccl, found.nccl_how) == ("2.16.5", "linked")
    assert found.nccl_sass[-1] == "8.0"  # and so its collectives cannot run on 9.0
    assert found.pythons == ("3.9", "3.10", "3.11")


def test_which_releases_are_known() -> None:
    known = facts.releases()
    assert len(known) >= 89
    assert list(known) == sorted(known, key=order)
    assert {minor(release) for release in known} >= {f"2.{number}" for number in range(4, 23)}
    for release in known:
        found = facts.compiled(release)
        assert found.prerelease is not is_final(release)
        assert found.deep
        assert re.fullmatch(r"\d+\.\d+(\.\d+)?", found.cuda), release
        assert re.fullmatch(r"\d+\.\d+\.\d+", found.cudnn), release
        assert re.fullmatch(r"\d+\.\d+\.\d+", found.nccl), release
        assert found.nccl_how in ("linked", "loaded"), release
        assert bool(found.nccl_sass) is (found.nccl_how == "linked"), release
        assert found.sass, release
        assert found.opens, release


@pytest.mark.parametrize(
    ("release", "cuda", "cudnn"),
    [
        ("2.4.4", "11.0", "8.0.4"),
        ("2.5.3", "11.2", "8.1.0"),
        ("2.11.1", "11.2", "8.1.0"),
        ("2.12.1", "11.8", "8.6.0"),
        ("2.14.1", "11.8", "8.6.0"),
        ("2.16.2", "12.3", "8.9.6"),
        ("2.17.1", "12.3", "8.9.6"),
        ("2.18.1", "12.5.1", "9.3.0"),
        ("2.21.0", "12.5.1", "9.3.0"),
        ("2.22.0rc0", "12.5.1", "9.10.0"),
    ],
)
def test_what_releases_were_compiled_for(release: str, cuda: str, cudnn: str) -> None:
    assert (facts.compiled(release).cuda, facts.compiled(release).cudnn) == (cuda, cudnn)


def test_what_blackwell_cannot_run() -> None:
    lost = {r for r in facts.releases() for u in facts.compiled(r).unusable if u.since == "10.0"}
    assert {minor(release) for release in lost} == {"2.16", "2.17", "2.18", "2.19", "2.20"}
    for release in lost:
        first, last = facts.compiled(release).ptx
        assert (first.since, first.until, last.since, last.until) == ("9.0", "9.0", "10.0", None)
    assert facts.compiled("2.21.0").unusable == ()


def test_nccl_is_loaded_from_2_21_on() -> None:
    how = {minor(release): facts.compiled(release).nccl_how for release in facts.releases()}
    assert {release for release, way in how.items() if way == "loaded"} == {"2.21", "2.22"}
    assert "libnccl.so.2" in facts.compiled("2.21.0").opens
    assert "libnccl.so.2" not in facts.compiled("2.20.0").opens


def test_what_a_release_requires() -> None:
    found = facts.requires("2.15.1")
    assert 'nvidia-cudnn-cu12==8.9.4.25; extra == "and-cuda"' in found
    assert not [line for line in facts.requires("2.13.1") if "and-cuda" in line]
    with pytest.raises(UsageError):
        facts.requires("2.98.0")


def test_a_release_whose_libraries_were_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {k: v for k, v in facts.entry("2.15.1").items() if k not in ("sass", "ptx", "unusable", "opens")}
    entry |= {"cudnn": "8", "nccl": {"version": "2.16.5", "how": ""}}
    monkeypatch.setattr(factfiles, "read", lambda _name: {"2.15.1": entry})
    found = facts.compiled("2.15.1")
    assert (found.deep, found.cuda, found.cudnn, found.pythons[0]) == (False, "12.2", "8", "3.9")
    assert (found.sass, found.ptx, found.opens, found.nccl_how, found.nccl_sass) == ((), (), (), "", ())


def test_an_unknown_release_says_what_is_known() -> None:
    with pytest.raises(UsageError) as caught:
        facts.compiled("2.98.0")
    assert "2.98.0" in caught.value.message
    assert "from 2.4.0 to" in caught.value.remedy
    with pytest.raises(UsageError, match=r"2\.15\.9") as caught:
        facts.compiled("2.15.9")
    assert "2.15.0, 2.15.0.post1, 2.15.1, or" in caught.value.remedy
    assert "2.14" not in caught.value.remedy


# --- drivers ---------------------------------------------------------------------------------------


def test_the_drivers_of_a_release() -> None:
    low, high = facts.driver_floor("2.15.1", "12.2")
    assert (low.since, low.driver, low.cuda) == ("0", "525.60.13", "12.0")
    assert (high.since, high.driver, high.cuda) == ("9.0", "530.30.02", "12.1")
    assert "PTX 8.1" in high.why


def test_the_expression_of_a_release() -> None:
    assert facts.require_cuda("2.15.1", "12.2") == "cuda>=12.1 cuda>=12.0,arch<9.0"


def test_without_ptx_there_is_one_floor() -> None:
    floors = facts.floors(replace(made_up("2.15.1"), ptx=()), "12.2")
    assert [floor.driver for floor in floors] == ["525.60.13"]
    assert facts.require_expression(floors) == "cuda>=12.0"


def test_old_ptx_raises_no_floor() -> None:
    old = replace(made_up("2.15.1"), ptx=(Ptx(since="8.0", isa="7.1", what="some"),))
    assert len(facts.floors(old, "12.2")) == 1


@pytest.mark.parametrize(("cuda", "isa"), [("99.0", "8.1"), ("12.2", "99.9")])
def test_unknown_drivers(cuda: str, isa: str) -> None:
    odd = replace(made_up("2.15.1"), ptx=(Ptx(since="9.0", isa=isa, what="some"),))
    with pytest.raises(UsageError, match="is not known"):
        facts.floors(odd, cuda)


def _runtime_accepts(expression: str, cuda: str, arch: str) -> bool:
    """What NVIDIA's container runtime does: a space is *or*, a comma is *and*."""

    def holds(condition: str) -> bool:
        match = re.fullmatch(r"(cuda|arch)(>=|<)([0-9.]+)", condition)
        assert match, condition
        have = order({"cuda": cuda, "arch": arch}[match[1]])
        return have >= order(match[3]) if match[2] == ">=" else have < order(match[3])

    return any(all(holds(c) for c in term.split(",")) for term in expression.split(" "))


ARCHS = ["3.5", "5.0", "6.1", "7.5", "8.0", "8.9", "9.0", "10.0", "12.0"]
CUDAS = ["11.8", "12.0", "12.1", "12.2", "12.3", "12.5", "12.8", "13.0"]


@given(
    st.dictionaries(st.sampled_from(ARCHS), st.sampled_from(CUDAS), max_size=4),
    st.sampled_from(ARCHS),
    st.sampled_from(CUDAS),
)
def test_the_expression_accepts_what_the_floors_do(needs: dict[str, str], arch: str, cuda: str) -> None:
    floors = [Floor(since="0", cuda="12.0", driver="525.60.13", why="the major version")]
    for since in sorted(needs, key=order):
        floors.append(Floor(since=since, cuda=needs[since], driver="1", why="only PTX"))
    expression = facts.require_expression(tuple(floors))
    mine = next(floor for floor in reversed(floors) if order(floor.since) <= order(arch))
    highest = max(order(floor.cuda) for floor in floors)
    wanted = order(cuda) >= order(mine.cuda) or order(cuda) >= highest
    assert _runtime_accepts(expression, cuda, arch) is wanted
    assert expression.startswith("cuda>=")  # the runtime then advises to update the driver
    assert all(len(condition) < 128 for condition in re.split("[ ,]", expression))
