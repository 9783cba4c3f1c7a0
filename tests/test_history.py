"""What names meant: written down whenever tfenv moves one, through kills and full disks, and shown."""

from __future__ import annotations

import json
import multiprocessing
import os
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st
from small import Place
from tfenv import cli, pipeline
from tfenv.errors import NotReadyError, TfenvError, UsageError
from tfenv.history import state, verdicts
from tfenv.history.log import History, Log
from tfenv.history.model import Event
from tfenv.page import evidence
from tfenv.report import Check, Host, Report

A, B, C = ("sha256:" + letter * 64 for letter in "abc")
NAME = "tfenv:2.15-cu12"


def event(day: int, after: str, before: str = "", kind: Any = "moved", **more: Any) -> Event:
    return Event(
        **{
            "at": f"2026-11-{day:02}T12:00:00Z",
            "name": NAME,
            "kind": kind,
            "before": before,
            "after": after,
            "cell": "a-cell",
            "lock": "",
            "why": "tfenv up",
            "verdict": "",
            **more,
        }
    )


# The file.


def test_what_is_written_is_read_in_order(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert log.read() == History(())
    log.append([event(1, A), event(2, B)])
    log.append([event(3, C)])
    log.append([])
    assert log.read() == History((event(1, A), event(2, B), event(3, C)))
    assert len(log.path.read_text().splitlines()) == 3


@given(cut=st.integers(min_value=0, max_value=400))
@settings(max_examples=60, deadline=None)
def test_a_kill_in_the_middle_of_a_line_loses_that_line_alone(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    log = Log(tmp_path_factory.mktemp("log"))
    log.append([event(1, A)])
    whole = log.path.stat().st_size
    log.append([event(2, B)])
    os.truncate(log.path, min(whole + cut, log.path.stat().st_size))
    log.append([event(3, C)])
    found = log.read()
    assert found.events[0] == event(1, A) and found.events[-1] == event(3, C)
    assert len(found.events) + found.damaged in (2, 3)


@pytest.mark.parametrize(
    "line", [b"{", b"[1]", b"null", b'{"format": 1}', b"\xff\xfe", b"[" * 70_000, b'{"format": "1"}']
)
def test_a_damaged_line_is_counted_and_hides_no_other(tmp_path: Path, line: bytes) -> None:
    log = Log(tmp_path)
    log.append([event(1, A)])
    with log.path.open("ab") as file:
        file.write(line + b"\n")
    log.append([event(2, B)])
    assert log.read() == History((event(1, A), event(2, B)), damaged=1)


def test_lines_of_a_newer_tfenv_are_left_out_and_counted(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append([event(1, A)])
    with log.path.open("a") as file:
        file.write('{"format": 2, "what": "ever"}\n')
    assert log.read() == History((event(1, A),), newer=1)


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path)
    log.append([event(1, A)])
    before = log.path.read_bytes()
    write = os.write

    def full(handle: int, data: bytes) -> int:
        if len(data) > 50:
            return write(handle, data[:50])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(NotReadyError, match="No space"):
        patch.setattr(os, "write", full)
        log.append([event(2, "x" * 30)])
    assert log.path.read_bytes() == before


def test_several_at_once_lose_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append, args=(tmp_path, n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = log.read()
    assert (len(found.events), found.damaged) == (80, 0)


def _append(root: Path, number: int) -> None:
    for n in range(20):
        Log(root).append([event(1, f"{number}-{n}")])


# What it says.


def test_what_a_name_meant_before_the_latest_first_each_once() -> None:
    events = (event(1, A), event(2, B, A), event(3, A, B), event(4, C, A))
    assert [of.after for of in state.earlier(events, C)] == [A, B]
    assert [of.after for of in state.earlier(events, A)] == [C, B]
    assert state.earlier((), A) == ()


def test_what_somebody_else_gave_it_is_known_by_what_it_was_moved_from() -> None:
    found = state.earlier((event(1, A), event(3, C, before=B)), C)
    assert [of.after for of in found] == [B, A]
    assert found[0].why == "not written down" and found[0].at == ""


@pytest.mark.parametrize(
    ("when", "digest"),
    [
        ("2026-11-01", A),
        ("2026-11-02", B),
        ("2026-11-02T11:59:59Z", A),
        ("2026-11-02T12:00:00Z", B),
        ("2026-11-02T12:30:00+01:00", A),
        ("2027-01-01", B),
        ("2026-10-31", C),
    ],
)
def test_what_a_name_meant_on_a_day(when: str, digest: str) -> None:
    found = state.meant_at((event(1, A, before=C), event(2, B, A)), state.moment(when))
    assert found is not None and found.after == digest


def test_what_it_meant_before_it_was_there_is_unknown() -> None:
    assert state.meant_at((event(2, B),), state.moment("2026-11-01")) is None


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "", "2026-11-31", "99999999999"])
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(UsageError, match="no date"):
        state.moment(text)


def test_a_day_means_its_end_in_utc() -> None:
    assert state.moment("2026-11-30") == datetime(2026, 11, 30, 23, 59, 59, 999999, timezone.utc)


def test_a_name_is_held_from_its_rollback_to_its_release() -> None:
    back = event(2, A, B, "rolled back")
    assert state.held((event(1, B), back)) == {NAME: back}
    assert state.held((event(1, B), back, event(3, B, A, "released"))) == {}
    again = event(4, A, B, "rolled back")
    assert state.held((back, event(3, B, A, "released"), again)) == {NAME: again}


def report(digest: str, verdict: Any, started: int, gpu: str = "", stand_in: str = "") -> Report:
    return Report(
        image="x",
        digest=digest,
        suite="full",
        suite_hash="0" * 64,
        verdict=verdict,
        host=Host(gpus=(gpu,) if gpu else ()),
        checks=(Check(name="import", status="pass"),),
        started=started,
        seconds=1,
        stand_in=stand_in,
    )


@pytest.mark.parametrize(
    ("reports", "word"),
    [
        ([], ""),
        ([("unverified", 1, "")], "unverified"),
        ([("unverified", 1, ""), ("pass", 2, "H200")], "pass"),
        ([("fail", 1, "T4"), ("pass", 2, "H200")], "fail"),
        ([("fail", 1, "H200"), ("pass", 2, "H200")], "pass"),
        ([("pass", 1, "H200"), ("fail", 2, "H200")], "fail"),
        ([("pass", 1, "H200"), ("unverified", 2, "H200")], "pass"),
        ([("fail", 1, "H200"), ("unverified", 2, "H200")], "fail"),
    ],
)
def test_the_verdict_of_several_reports(reports: list[Any], word: str) -> None:
    assert verdicts.verdict(report(A, verdict, at, gpu) for verdict, at, gpu in reports) == word
    assert verdicts.verdict([report(A, "pass", 1, "T4", stand_in="a base")]) == ""


@pytest.mark.parametrize(("expected", "word"), [(2, "pass"), (1, "fail"), (None, "fail")])
def test_one_that_was_to_see_other_gpus_tells_of_no_fault(expected: int | None, word: str) -> None:
    reports = [report(A, "pass", 1, "T4"), replace(report(A, "fail", 2, "T4"), expect_gpus=expected)]
    assert verdicts.verdict(reports) == word
    assert [proof.verdict for proof in evidence.proofs(reports)] == [word]


@pytest.mark.parametrize(
    ("failed", "passed", "word"),
    [
        ("full", "smoke", "fail"),
        ("full", "workers", "fail"),
        ("smoke", "smoke", "pass"),
        ("smoke", "full", "pass"),
    ],
)
def test_a_lesser_suite_undoes_no_failure(failed: Any, passed: Any, word: str) -> None:
    reports = [
        replace(report(A, "fail", 1, "T4"), suite=failed),
        replace(report(A, "pass", 2, "T4"), suite=passed),
    ]
    assert verdicts.verdict(reports) == word


def test_reports_are_found_by_exactly_that_digest_and_damaged_ones_are_none(tmp_path: Path) -> None:
    from tfenv.report import write

    write(report(A, "pass", 1, "T4"), tmp_path / "one")
    twin = A[:-1] + "0"  # begins as the other does
    write(report(twin, "fail", 1), tmp_path / "two")
    (tmp_path / "two" / f"{B[7:19]}-x").mkdir()
    (tmp_path / "two" / f"{B[7:19]}-x" / "report.ctrf.json").write_text("{")
    of = verdicts.of_folders([tmp_path / "one", tmp_path / "two", tmp_path / "none"])
    assert (of(A), of(twin), of(B), of(C)) == ("pass", "fail", "", "")


# It is written wherever tfenv tags.


def build(here: Place, *layers: bytes) -> pipeline.Made:
    if layers:
        here.docker.will_build(*layers)
    return pipeline.make(here.workspace, here.inputs, here.host, no_cache=bool(layers), accept=True)


def test_a_build_writes_down_every_name_that_it_moves(here: Place) -> None:
    here.images.tags = {NAME: A}
    made = build(here)
    pipeline.tag(here.workspace, made, here.host)
    events = Log(here.store.root).read().events
    assert [of.name for of in events] == small.TAGS
    assert {(of.after, of.why, of.kind, of.cell) for of in events} == {
        (made.image.id, "tfenv build", "moved", here.cell.name)
    }
    assert {of.name: of.before for of in events if of.before} == {NAME: A}


def test_a_name_that_does_not_move_is_not_written_down_again(here: Place) -> None:
    made = build(here)
    pipeline.tag(here.workspace, made, here.host)
    before = Log(here.store.root).path.read_bytes()
    pipeline.tag(here.workspace, made, here.host)
    assert Log(here.store.root).path.read_bytes() == before


def test_a_move_that_a_kill_left_unwritten_is_found_the_next_time(here: Place) -> None:
    made = build(here)
    pipeline.tag(here.workspace, made, here.host)
    Log(here.store.root).path.unlink()
    pipeline.tag_image(here.workspace, here.inputs, made.image, here.host, why="tfenv up", verdict="pass")
    events = Log(here.store.root).read().events
    assert {(of.kind, of.verdict) for of in events} == {("found", "pass")} and len(events) == len(small.TAGS)


def test_tags_that_cannot_be_moved_are_not_written_down(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    made = build(here)

    def refuse(*_: object) -> None:
        raise TfenvError("refused", remedy="x")

    monkeypatch.setattr(here.images, "tag", refuse)
    with pytest.raises(TfenvError, match="refused"):
        pipeline.tag(here.workspace, made, here.host)
    assert Log(here.store.root).read() == History(())


def test_it_outlives_gc(here: Place) -> None:
    build(here)
    Log(here.store.root).append([event(1, A)])
    assert cli.run(["gc"]) == 0 and cli.run(["gc", "--everything"]) == 0
    assert Log(here.store.root).read().events == (event(1, A),)


# The command.


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["history", *arguments])
    return (code, *capsys.readouterr())


def test_the_command_shows_the_newest_first_and_what_it_means_now(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    Log(here.store.root).append(
        [event(1, A), event(2, B, A, verdict="fail"), replace(event(2, C), name="tfenv:x")]
    )
    here.images.tags = {NAME: B, "tfenv:x": A}
    code, out, _ = shown(capsys, "2.15-cu12")
    lines = out.splitlines()
    assert code == 0 and lines[0] == NAME
    assert B[:19] in lines[1] and "FAILED" in lines[1] and "2026-11-02 12:00:00" in lines[1]
    assert A[:19] in lines[2] and "not checked" in lines[2]
    code, out, _ = shown(capsys)
    assert "tfenv:x" in out and "not moved by tfenv" in out and "... and 1 before" in out


def test_the_command_as_data(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    Log(here.store.root).append([event(1, B), event(2, A, B, "rolled back")])
    here.images.tags = {NAME: A}
    code, out, _ = shown(capsys, "--json")
    first, second = json.loads(out)
    assert code == 0
    assert (first["digest"], first["current"], first["held"]) == (B, False, False)
    assert (second["digest"], second["current"], second["held"]) == (A, True, True)


def test_the_command_without_an_engine_and_with_damage(
    here: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Log(here.store.root).append([event(1, A)])
    with Log(here.store.root).path.open("a") as file:
        file.write("{\n")

    def gone(*_: object, **__: object) -> None:
        raise NotReadyError("no engine", remedy="x")

    monkeypatch.setattr("tfenv.images.ids", gone)
    code, out, err = shown(capsys)
    assert code == 0 and A[:19] in out and "1 lines" in err and "no engine" in err
    assert json.loads(shown(capsys, "--json")[1])[0]["current"] is None


def test_the_command_with_nothing(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = shown(capsys)
    assert (code, out) == (0, "") and "nothing is written down" in err
    assert shown(capsys, "2.15-cu12")[0] == 2


@pytest.mark.parametrize("at", ["", "yesterday", "9" * 40])
def test_a_line_of_no_time_is_damaged_and_hides_no_other(tmp_path: Path, at: str) -> None:
    log = Log(tmp_path)
    log.append([event(1, A), replace(event(2, B), at=at), event(3, C)])
    found = log.read()
    assert ([one.after for one in found.events], found.damaged) == ([A, C], 1)
