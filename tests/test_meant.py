"""An alias that is held back means its image: what verifies it or loads it takes that one, and says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
from small import Place
from test_history import NAME, build
from tfenv import cli, lockfile, pipeline
from tfenv.bisect.asking import Options, new_question
from tfenv.bisect.question import Question
from tfenv.engine import Completed
from tfenv.errors import UsageError
from tfenv.history.log import Log
from tfenv.lock import write_lock
from tfenv.meant import all_meant, meant
from tfenv.report import Check, Host, Report

ALIAS, CELL = NAME.removeprefix("tfenv:"), small.CELL


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, Any, str]]:
    """What was verified: cell, lock and digest."""
    done: list[tuple[str, Any, str]] = []

    def check(cell: Any, lock: Any, image: Any, host: Any, **more: Any) -> tuple[Report, Path]:
        done.append((cell.name, lock, image.id))
        checks = (Check(name="import", status="pass"),)
        about = {"image": cell.name, "digest": image.id, "suite": "full", "suite_hash": "2" * 64}
        made = Report(**about, verdict="pass", host=Host(), checks=checks, started=0, seconds=1.0)
        return made, tmp_path

    monkeypatch.setattr(pipeline, "check", check)
    return done


@pytest.fixture
def held(here: Place) -> tuple[str, Any]:
    """The digest and the lock that the alias is held back at; its cell was locked and built anew since."""
    old = build(here, small.tarred([small.file("first")]))
    pipeline.tag(here.workspace, old, here.host)
    lock = here.lock
    write_lock(replace(lock, debian_locked_at="2025-12-01T00:00:00Z"), here.workspace.images)
    assert cli.run(["render"]) == 0
    new = build(here, small.tarred([small.file("second")]))
    pipeline.tag(here.workspace, new, here.host)
    here.images.loaded.update([old.image.id, new.image.id])
    assert cli.run(["rollback", ALIAS]) == 3
    assert here.images.tags[NAME] == old.image.id != here.images.tags[small.TAGS[0]]
    return old.image.id, lock


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return small.place(tmp_path, monkeypatch)


def test_a_held_alias_is_verified_by_its_own_image_and_lock(
    here: Place,
    held: tuple[str, Any],
    checked: list[tuple[str, Any, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    assert cli.run(["verify", ALIAS, "--json"]) == 0
    out, err = capsys.readouterr()
    assert checked == [(CELL, held[1], held[0])]
    assert json.loads(out)["digest"] == held[0] and f"{NAME} is held back at {held[0][:19]}" in err


@pytest.mark.parametrize("name", [CELL, "2.15", "latest"])
def test_other_names_of_the_cell_mean_what_is_committed(
    here: Place,
    held: tuple[str, Any],
    checked: list[tuple[str, Any, str]],
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    capsys.readouterr()
    assert cli.run(["verify", name]) == 0
    assert checked == [(CELL, here.lock, here.images.tags[small.TAGS[0]])] and checked[0][1] != held[1]
    assert "held back" not in capsys.readouterr().err


def test_each_image_is_verified_once(
    here: Place, held: tuple[str, Any], checked: list[tuple[str, Any, str]]
) -> None:
    assert cli.run(["verify", ALIAS, CELL, "2.15", NAME]) == 0
    assert [digest for _, _, digest in checked] == [held[0], here.images.tags[small.TAGS[0]]]
    assert [one.held for one in all_meant((), here.workspace, here.store.root, every=True)] == [None]


def test_let_go_it_means_its_cell_again(
    here: Place, held: tuple[str, Any], checked: list[tuple[str, Any, str]]
) -> None:
    assert cli.run(["rollback", ALIAS, "--release"]) == 0
    assert cli.run(["verify", ALIAS]) == 0
    assert checked[0][1:] == (here.lock, here.images.tags[small.TAGS[0]])


def test_without_the_engine_what_is_committed_is_taken_and_that_is_said(
    here: Place, held: tuple[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path, declared: None
) -> None:
    capsys.readouterr()
    assert cli.run(["verify", ALIAS, "--kit", str(tmp_path / "kit")]) == 0
    out, err = capsys.readouterr()
    assert f"tfenv verify {CELL} --suite full" in out and "--lines" in out
    assert f"what is taken is what is committed for {CELL}" in err


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfenv.pipeline.declared", lambda cell, lock, image: {"cell": cell.name})


def test_an_image_that_is_gone_is_not_replaced_in_silence(
    here: Place, held: tuple[str, Any], checked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    del here.images.tags[NAME]
    capsys.readouterr()
    assert cli.run(["verify", ALIAS]) == 2
    err = capsys.readouterr().err
    assert "which is not here any more" in err and f"tfenv rollback {NAME} --release" in err and not checked


def test_a_lock_that_nobody_has_is_told_with_a_way_out(
    here: Place, held: tuple[str, Any], checked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (here.store.root / "history/locks" / f"{lockfile.lock_hash(held[1])}.json").unlink()
    capsys.readouterr()
    assert cli.run(["verify", ALIAS]) == 2
    err = capsys.readouterr().err
    assert (
        "neither committed nor in the store" in err and f"tfenv verify --image {NAME}" in err and not checked
    )


def test_a_kept_lock_that_is_another_one_is_not_taken(
    here: Place, held: tuple[str, Any], checked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    kept = here.store.root / "history/locks" / f"{lockfile.lock_hash(held[1])}.json"
    kept.write_text(lockfile.dump_lock(here.lock))
    assert cli.run(["verify", ALIAS]) == 2
    assert "neither committed nor in the store" in capsys.readouterr().err and not checked


def test_an_image_of_a_cell_that_the_matrix_has_no_more(here: Place, held: tuple[str, Any]) -> None:
    log = Log(here.store.root)
    (event,) = (event for event in log.read().events if event.kind == "rolled back")
    log.append([replace(event, cell="2.14.1-cu11.8-cudnn8.7-py3.11-debian12")])
    with pytest.raises(UsageError, match="which the matrix does not have") as caught:
        meant(ALIAS, here.workspace, here.store.root)
    assert f"tfenv verify --image {NAME}" in str(caught.value.remedy)


def test_stress_loads_the_image_that_a_held_alias_means(
    here: Place, held: tuple[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[str] = []

    def run_load(start: Any, spec: Any, packed: bytes, arguments: Any, **more: Any) -> Any:
        seen.append(spec.image)
        raise UsageError("enough", remedy="x")

    monkeypatch.setattr("tfenv.load.session.run_load", run_load)
    monkeypatch.setattr("tfenv.load.session.gpu_here", lambda _succeeds: True)
    monkeypatch.setattr(small.Images, "container", lambda self, spec: None)
    for name in (ALIAS, CELL):
        assert cli.run(["stress", name]) == 2
    assert seen == [held[0], here.images.tags[small.TAGS[0]]]


@pytest.fixture
def client(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A docker client that knows the engine's names."""

    def run_command(argv: list[str], **_: object) -> Completed:
        return Completed(0 if argv[-1] in here.images.tags else 1, "", "")

    monkeypatch.setattr("tfenv.engine.check", lambda _engine: None)
    monkeypatch.setattr("tfenv.engine.run_command", run_command)


def question(here: Place, **more: Any) -> Question:
    typed = Options(**{"before": (), "command": ("true",), "where": "image", **more})
    return new_question(typed, lambda: here.workspace, here.host)


def test_bisect_takes_the_image_and_the_pins_that_a_held_alias_means(
    here: Place, held: tuple[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    left = held[1].wheels[0].name
    committed = replace(here.lock, wheels=tuple(one for one in here.lock.wheels if one.name != left))
    write_lock(committed, here.workspace.images)
    capsys.readouterr()
    asked = question(here, good=ALIAS, bad=CELL, before=(ALIAS,))
    assert capsys.readouterr().err.count("is held back at") == 1
    assert asked.image == held[0]
    assert asked.good.pins and asked.bad.pins
    assert set(asked.good.pins.by_name) - set(asked.bad.pins.by_name) == {left}


def test_bisect_takes_what_is_committed_of_a_name_that_is_not_held(
    here: Place, held: tuple[str, Any], client: None
) -> None:
    asked = question(here, good="2025-01-01", bad="2.15", before=(CELL,))
    assert asked.image == small.TAGS[0] and asked.bad.when == here.lock.exclude_newer


def test_bisect_does_not_take_another_image_in_silence(here: Place, held: tuple[str, Any]) -> None:
    del here.images.tags[NAME]
    with pytest.raises(UsageError, match="which is not here any more"):
        question(here, good=ALIAS, bad=CELL)


def test_run_does_not_take_another_image_in_silence(
    here: Place,
    held: tuple[str, Any],
    client: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[list[str]] = []

    def run(argv: list[str], *, terminal: bool) -> int:
        started.append(argv)
        return 0

    monkeypatch.setattr("tfenv.commands.run._run", run)
    log = Log(here.store.root)
    (event,) = (event for event in log.read().events if event.kind == "rolled back")
    log.append([replace(event, cell="2.14.1-cu11.8-cudnn8.7-py3.11-debian12")])  # not in the matrix any more
    assert cli.run(["run", ALIAS, "true"]) == 0
    assert NAME in started[0]
    del here.images.tags[NAME]
    capsys.readouterr()
    assert cli.run(["run", ALIAS, "true"]) == 2
    err = capsys.readouterr().err
    assert "which is not here any more" in err and f"tfenv rollback {NAME} --release" in err
    assert len(started) == 1


def test_doctor_looks_into_the_image_that_a_held_alias_means(
    here: Place, held: tuple[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def run_in(start: Any, image: str, host: Any, **more: Any) -> tuple[str, int]:
        seen.append(image)
        return "ready", 0

    monkeypatch.setattr("tfenv.doctor.inside.run_in", run_in)
    monkeypatch.setattr("tfenv.doctor.inside.host_of", lambda _sources: {"gpus": 0, "driver": ""})
    capsys.readouterr()
    for name in (ALIAS, CELL):
        assert cli.run(["doctor", "--in", name]) == 0
    assert seen == [NAME, small.TAGS[0]] and capsys.readouterr().err.count("is held back at") == 1
    del here.images.tags[NAME]
    assert cli.run(["doctor", "--in", ALIAS]) == 2
    assert "which is not here any more" in capsys.readouterr().err
    assert cli.run(["doctor", "--in", "other:1"]) == 2
    assert "docker pull other:1" in capsys.readouterr().err
