"""The folder that a command works in."""

from __future__ import annotations

from pathlib import Path

import pytest
import small
from tfenv.errors import MatrixError, TfenvError, UsageError
from tfenv.lockfile import LOCK_NAME
from tfenv.workspace import Workspace, here, here_or_checkout


@pytest.fixture
def team(tmp_path: Path) -> Workspace:
    return small.workspace(tmp_path / "team", small.TWO_BASES)


def test_the_nearest_matrix_above_is_used(team: Workspace) -> None:
    below = team.start / "src" / "deep"
    below.mkdir(parents=True)
    found = Workspace(below, {})
    assert found.matrix_path == team.start / "matrix.yaml"
    assert found.images == team.start / "images"
    (team.start / "src" / "matrix.yaml").write_text(small.matrices.TEXT)
    assert Workspace(below, {}).images == team.start / "src" / "images"


def test_a_variable_names_another_matrix(team: Workspace, tmp_path: Path) -> None:
    found = Workspace(tmp_path, {"TFENV_MATRIX": str(team.start / "matrix.yaml")})
    assert found.images == team.start / "images"
    assert len(found.matrix.cells) == 2


def test_outside_of_any_matrix_it_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(MatrixError) as caught:
        _ = Workspace(tmp_path, {}).matrix
    assert "TFENV_MATRIX" in caught.value.remedy


def test_this_workspace_is_of_the_current_folder(team: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFENV_MATRIX", raising=False)
    monkeypatch.chdir(team.start)
    assert here().matrix_path == team.start / "matrix.yaml"


def test_outside_of_any_matrix_the_checkouts_own_is_meant_and_told(
    team: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    own = team.start / "matrix.yaml"
    monkeypatch.delenv("TFENV_MATRIX", raising=False)
    monkeypatch.setattr("tfenv.resources.checkout_matrix", lambda: own)
    monkeypatch.chdir(tmp_path)
    found = here_or_checkout(told.append)
    assert (found.matrix_path, found.images) == (own, team.images)
    assert told == [f"no matrix.yaml here or above: using {own}"]
    with pytest.raises(MatrixError):
        _ = here().matrix_path


def test_a_matrix_that_is_here_or_named_wins_silently(
    team: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TFENV_MATRIX", raising=False)
    monkeypatch.setattr("tfenv.resources.checkout_matrix", lambda: pytest.fail("it was asked"))
    monkeypatch.chdir(team.start)
    assert here_or_checkout(pytest.fail).matrix_path == team.start / "matrix.yaml"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFENV_MATRIX", "/none.yaml")
    assert here_or_checkout(pytest.fail).matrix_path == Path("/none.yaml")


def test_cells_by_any_name_once_and_in_the_order_given(team: Workspace) -> None:
    first, second = team.matrix.cells
    names = (second.name, "2.15-cu12", f"tfenv:{first.name}", "2.15.1-cu12-debian13")
    assert team.cells(names) == (second, first)
    assert team.cells((), every=True) == (first, second)


def test_no_name_and_wrong_names_are_refused(team: Workspace) -> None:
    with pytest.raises(UsageError, match="no cell is named") as caught:
        team.cells(())
    assert "--all" in caught.value.remedy
    with pytest.raises(UsageError, match=r"2\.16-cu12") as caught:
        team.cells(("2.15-cu12", "2.16-cu12"))
    assert "2.15-cu12" in caught.value.remedy


def test_a_lock_is_found_or_its_absence_told(team: Workspace) -> None:
    cell = team.matrix.cells[0]
    assert team.lock(cell) == team.find_lock(cell) == small.lock(cell)
    (team.folder(cell) / LOCK_NAME).unlink()
    assert team.find_lock(cell) is None
    with pytest.raises(UsageError, match="is not locked") as caught:
        team.lock(cell)
    assert f"tfenv lock {cell.name}" in caught.value.remedy


def test_a_damaged_lock_is_not_taken_for_none(team: Workspace) -> None:
    cell = team.matrix.cells[0]
    (team.folder(cell) / LOCK_NAME).write_text("{")
    with pytest.raises(TfenvError, match=LOCK_NAME):
        team.find_lock(cell)


def test_the_tags_of_a_cell_are_its_name_and_the_shortest_aliases(team: Workspace) -> None:
    first, second = team.matrix.cells
    assert list(team.tags(first)) == small.TAGS
    assert team.tags(second)[0] == f"tfenv:{second.name}"
    assert "tfenv:2.15-cu12-debian13" in team.tags(second)
    assert not set(team.tags(first)) & set(team.tags(second))


def test_an_image_of_another_lock_never_gets_the_canonical_name(team: Workspace) -> None:
    for cell in team.matrix.cells:
        locked, other = team.tags(cell), team.tags(cell, ending="-unlocked")
        assert other == (f"{locked[0]}-unlocked", *locked[1:])
        assert team.tags(cell, ending="-stand-in") == (f"{locked[0]}-stand-in",)
    every = [name for cell in team.matrix.cells for name in team.tags(cell)]
    assert len(set(every)) == len(every) and not any(name.endswith("-unlocked") for name in every)


def test_an_image_is_looked_for_by_its_canonical_name_first(team: Workspace) -> None:
    for cell in team.matrix.cells:
        assert team.image_names(cell) == (f"tfenv:{cell.name}", f"tfenv:{cell.name}-unlocked")


def test_tags_are_of_the_matrix_own_repository(tmp_path: Path) -> None:
    text = small.matrices.changed("repository: tfenv", "repository: host:5000/team/tf")
    team = small.workspace(tmp_path, text)
    assert all(tag.startswith("host:5000/team/tf:") for tag in team.tags(team.matrix.cells[0]))
