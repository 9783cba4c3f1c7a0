"""The file of a team environment's lock: canonical, and damage is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import small
import teams
from tfenv.errors import TfenvError
from tfenv.team import flow, lockfile
from tfenv.team.model import TeamLock


@pytest.fixture
def lock(tmp_path: Path) -> TeamLock:
    place = small.workspace(tmp_path / "team", teams.TEXT)
    return flow.relock(place, teams.environment(place), resolvers=teams.resolvers())[1]


def test_what_is_written_is_read(lock: TeamLock, tmp_path: Path) -> None:
    path = tmp_path / "vision" / "lock.json"
    path.parent.mkdir()
    assert lockfile.read(path) is None
    path.write_text(lockfile.dump(lock))
    assert lockfile.read(path) == lock
    (tmp_path / "other").mkdir()
    (tmp_path / "other/lock.json").write_text(lockfile.dump(lock))
    with pytest.raises(TfenvError, match="another environment"):
        lockfile.read(tmp_path / "other/lock.json")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"kind": "team"', '"kind": "row"', "no lock of a team"),
        ('"format": 1', '"format": 9', "reads 1"),
        ('"inputs": "', '"inputs": "x', "not allowed"),
        ('"name": "six"', '"name": "../six"', "not allowed"),
        ('"libgl1"\n', '"libgl1; rm"\n', "not allowed"),
        ('"layer": "python", "name": "six"', '"layer": "tool", "name": "six"', "in no layer"),
        ('"uv": "0.9.9"', '"uv":  "0.9.9"', "canonical"),
        ('"epoch": ', '"epoch": -', "negative"),
        ("{", "", "cannot be used"),
    ],
)
def test_damage_is_told(lock: TeamLock, old: str, new: str, why: str) -> None:
    text = lockfile.dump(lock)
    assert old in text
    with pytest.raises(TfenvError, match=why) as error:
        lockfile.load(text.replace(old, new, 1), where="images/vision/lock.json")
    assert "tfenv lock vision" in error.value.remedy


def test_cut_off_anywhere_it_is_damaged(lock: TeamLock) -> None:
    text = lockfile.dump(lock)
    for end in range(0, len(text) - 1, 97):
        with pytest.raises(TfenvError):
            lockfile.load(text[:end], where="images/vision/lock.json")


def test_no_package_is_there_twice(lock: TeamLock) -> None:
    double = replace(lock, wheels=(lock.wheels[0], *lock.wheels))
    with pytest.raises(TfenvError, match="twice"):
        lockfile.load(lockfile.dump(double), where="images/vision/lock.json")


def test_a_rows_lock_is_none_of_a_team(tmp_path: Path) -> None:
    place = small.workspace(tmp_path / "team", teams.TEXT)
    text = place.lock_path(place.matrix.cells[0]).read_text()
    with pytest.raises(TfenvError, match="no lock of a team"):
        lockfile.load(text, where="images/vision/lock.json")
