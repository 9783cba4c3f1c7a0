"""`tfenv explain NAME` of an environment: what it stands on, adds and needs, and what was verified of it."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
import teams
from small import Place
from tfenv import cli, digest, facts, report
from tfenv.compat.needs import needs
from tfenv.digest import Digest
from tfenv.errors import EXIT_OK, EXIT_USAGE
from tfenv.lock import write_lock
from tfenv.lockfile import lock_hash
from tfenv.report import Check, Host, Report
from tfenv.team import asking, flow, telling, why
from tfenv.team.about import About, about

TEXT = teams.TEXT.replace("    apt: [libgl1]\n", "    apt: [libgl1]\n    extras: [devel]\n")
MANIFEST = "sha256:" + "1" * 64
START = small.CELL


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = small.place(tmp_path, monkeypatch, TEXT)
    monkeypatch.chdir(place.workspace.matrix_path.parent)
    return place


@pytest.fixture
def locked(here: Place) -> Place:
    teams.lock(here.workspace)
    return here


def told(place: Place) -> About:
    return about(place.workspace, teams.environment(place.workspace), place.store)


def text(place: Place) -> str:
    return "\n".join(telling.lines(told(place)))


def reported(folder: Path, **changes: Any) -> None:
    values: dict[str, Any] = {
        "image": "x",
        "digest": MANIFEST,
        "suite": "full",
        "suite_hash": "e" * 64,
        "verdict": "pass",
        "host": Host(gpus=("NVIDIA H200",), driver="580.159.04"),
        "checks": (Check(name="gpu", status="pass"),),
        "started": 1796044022355,
        "seconds": 1.0,
    }
    report.write(Report(**{**values, **changes}), folder)


def recorded(place: Place, name: str, lock: str, manifest: str = MANIFEST) -> Path:
    folder = place.workspace.images / name
    made = Digest(
        inputs="a" * 64,
        lock=lock,
        manifest=manifest,
        config="sha256:" + "2" * 64,
        diff_ids=(),
        layer_bytes=(),
        builder="x",
    )
    (folder / digest.FILE_NAME).write_text(digest.dump(made))
    return folder


# What it stands on


def test_a_lock_that_is_current(locked: Place) -> None:
    found = told(locked)
    assert (found.row, found.behind) == (START, None)
    assert found.pin is not None and f"sha256:{found.pin.inputs[:12]}, as they are now" in text(locked)


def test_a_lock_whose_row_has_moved_on(locked: Place) -> None:
    cell = teams.environment(locked.workspace)
    write_lock(replace(locked.workspace.lock(cell.start), epoch=1_800_000_000), locked.workspace.images)
    assert "has moved on" in text(locked) and "-> tfenv lock vision   (keeps every pin)" in text(locked)


def test_without_a_lock(here: Place) -> None:
    assert told(here).wheels == () and "not locked" in text(here) and "-> tfenv up vision" in text(here)


# What it adds, and why


def test_what_the_row_brings_is_called_so(locked: Place) -> None:
    cell = replace(teams.environment(locked.workspace), asked=("pip>=23", "six", "unknown"))
    row = locked.workspace.lock(cell.start)
    pip, six = why.wheels(cell, [teams.wheel("six", "1.17.0")], row, lambda wheel: ())
    assert pip.of_row and pip.why == "asked for: pip>=23; the row's"
    assert not six.of_row


def wheel_file(requires: list[str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        lines = "".join(f"Requires-Dist: {one}\n" for one in requires)
        archive.writestr("pandas-2.2.0.dist-info/METADATA", f"Name: pandas\nVersion: 2.2.0\n{lines}\n")
    return out.getvalue()


def test_what_was_asked_for_comes_first(locked: Place) -> None:
    pandas, six, pytz = told(locked).wheels
    assert (pandas.name, pandas.version, pandas.why) == ("pandas", "2.2.0", "asked for: pandas")
    assert six.asked == "six" and not six.of_row
    assert (pytz.asked, pytz.why) == ("", "for what was asked for")
    debian = {package.name: package.why for package in told(locked).debian}
    assert debian["libgl1"] == "asked for: libgl1" and debian["g++"] == "extra devel"


def test_what_needs_a_package_is_read_from_the_wheels_that_are_here(locked: Place) -> None:
    cell = teams.environment(locked.workspace)
    team, row = flow.team_lock(locked.workspace, cell), locked.workspace.lock(cell.start)
    assert team is not None

    def reason(data: bytes) -> tuple[str, ...]:
        sha256 = small.put(locked.store, data)
        own = [replace(w, sha256=sha256) if w.name == "pandas" else w for w in team.wheels]
        found = why.wheels(cell, own, row, why.from_store(locked.store))
        return found[-1].needed_by

    assert reason(wheel_file(["pytz>=2"])) == ("pandas",)
    assert reason(wheel_file(["pytz>=2; extra == 'zones'"])) == ("pandas",)  # of nothing else
    assert reason(wheel_file(["pytz>=2; python_version < '3'", "six", "!"])) == ()
    assert reason(b"no archive") == ()


def test_a_need_without_an_extra_says_more_than_one_of_an_extra(locked: Place) -> None:
    cell = teams.environment(locked.workspace)
    own = [teams.wheel(name, "1.0") for name in ("a", "b", "c")]
    stated = {"a": ("C ; extra == 'all'",), "b": ("c>=1",), "c": ("c[more]",)}
    row = locked.workspace.lock(cell.start)
    found = why.wheels(cell, own, row, lambda wheel: stated[wheel.name])
    assert next(package for package in found if package.name == "c").needed_by == ("b", "c")


def test_of_many_some_are_named() -> None:
    package = why.Package(name="a", version="1", needed_by=("b", "c", "d", "e"))
    assert package.why == "for b, c, d and 1 more"


def test_who_asks(here: Place) -> None:
    cell = teams.environment(here.workspace)
    assert set(asking.requirements(cell).values()) == {""}
    assert asking.debian(cell)["libgl1"] == "" and asking.debian(cell)["make"] == "devel"
    assert asking.in_short(cell) == "pandas, six; Debian: libgl1; extras: devel"


# What it needs


def test_needs_in_words() -> None:
    found = needs(facts.compiled("2.15.1"), "12.2", "8.9")
    assert found.drivers[0] == ("0", "525.60.13") and "7.5" in found.runs
    assert "9.0" in found.limited and "3.5" in found.refused
    said = found.in_words
    assert said.startswith("driver 525.60.13 or newer, from compute capability ")
    assert "5.0 to 7.5 run" in said and "to 9.0 run with limits" in said


def test_a_release_that_facts_do_not_know(here: Place) -> None:
    cell = teams.environment(here.workspace)
    unknown = replace(cell, row=replace(cell.row, tensorflow="9.9.9"))
    assert about(here.workspace, unknown, here.store).needs is None


# What was verified


def test_a_recorded_image_and_its_reports(locked: Place) -> None:
    cell = teams.environment(locked.workspace)
    folder = recorded(locked, "vision", lock_hash(locked.workspace.lock(cell)))
    reported(folder / "reports")
    reported(locked.store.root / "reports", host=Host(gpus=("NVIDIA A100",), driver="535.1"), started=1)
    found = told(locked)
    assert (found.image, found.built) == (MANIFEST, "recorded")
    assert [proof.names for proof in found.proofs] == [("NVIDIA H200",), ("NVIDIA A100",)]
    assert "verified: Verified on NVIDIA H200, driver 580.159.04" in text(locked)


def test_a_digest_of_another_lock_is_not_its_image(locked: Place) -> None:
    folder = recorded(locked, "vision", "b" * 64)
    reported(folder / "reports")
    found = told(locked)
    assert (found.image, found.proofs) == ("", ())
    assert "never built here" in text(locked) and "verified: no report of its image" in text(locked)


def test_what_was_verified_of_its_row_is_told_as_that(locked: Place) -> None:
    cell = teams.environment(locked.workspace)
    folder = recorded(locked, START, lock_hash(locked.workspace.lock(cell.start)))
    reported(folder / "reports")
    teams.lock(locked.workspace)
    assert f"  of {START}, which it stands on: Verified on NVIDIA H200" in text(locked)
    assert told(locked).proofs == ()


# The command


def test_the_command(locked: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["explain", "vision"]) == EXIT_OK
    out = capsys.readouterr().out
    assert out.startswith("vision: runs\n") and f"  stands on: {START}\n" in out
    assert cli.run(["explain", "tfenv:vision", "--gpu", "H100", "--driver", "580", "--json"]) == EXIT_OK
    data = json.loads(capsys.readouterr().out)
    assert (data["cell"], data["outcome"]) == (START, "limit")
    assert data["environment"]["name"] == "vision"
    assert data["environment"]["wheels"][0]["why"] == "asked for: pandas"


def test_a_cell_is_told_as_before(locked: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["explain", START, "--json"]) == EXIT_OK
    assert "environment" not in json.loads(capsys.readouterr().out)


def test_the_environments_are_named_where_a_name_is_none(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["explain", "visoin"]) == EXIT_USAGE
    assert "an environment (vision)" in capsys.readouterr().err


def test_a_driver_that_is_too_old_refuses_it(locked: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["explain", "vision", "--gpu", "H100", "--driver", "470"]) == 1
    assert capsys.readouterr().out.startswith("vision: refused")
