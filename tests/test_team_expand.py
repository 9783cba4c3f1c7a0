"""What matrix.yaml says of environments: names, cells, extras; and how a command finds one."""

from __future__ import annotations

from pathlib import Path

import matrices
import pytest
import small
import teams
from tfenv import cells
from tfenv.errors import MatrixError, UsageError
from tfenv.matrix_cache import cached_matrix
from tfenv.memo import Memo
from tfenv.team.extras import extras
from tfenv.team.names import wrong_name


@pytest.mark.parametrize("name", ["vision", "vision-2", "a", "nlp.prod", "team_x"])
def test_names(name: str) -> None:
    assert wrong_name(name) == ""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../x", "expected a name"),
        ("Vision", "expected a name"),
        ("2.15-cu12", "expected a name"),
        ("", "expected a name"),
        ("a/b", "expected a name"),
        ("a:b", "expected a name"),
        ("-x", "expected a name"),
        ("x-", "expected a name"),
        ("vïsion", "expected a name"),
        ("v" * 200, "expected a name"),
        ("x\n", "expected a name"),
        ("latest", "reads like"),
        ("debian12", "reads like"),
        ("cu12", "reads like"),
        ("py3.11", "reads like"),
        ("vision-unlocked", "given to images"),
        ("vision-stand-in", "given to images"),
        ("vision-20240320", "given to images"),
    ],
)
def test_names_that_are_refused(name: str, why: str) -> None:
    assert why in wrong_name(name)


def test_an_environment_is_its_cell_with_more(tmp_path: Path) -> None:
    matrix = matrices.load(tmp_path, teams.TEXT)
    (own,) = matrix.environments
    assert own.name == "vision" and own.start == matrix.cells[0]
    assert own.requirements == (*own.start.requirements, "pandas", "six")
    assert own.epoch > own.start.epoch
    assert own not in matrix.cells, "the rows' tags and pages know nothing of it"
    assert cells.resolve(matrix, "vision") == own == cells.resolve(matrix, "tfenv:vision")
    with pytest.raises(UsageError, match="no cell is called 'visoin'") as error:
        cells.resolve(matrix, "visoin")
    assert "vision" in error.value.remedy


def test_extras_bring_what_they_are_for(tmp_path: Path) -> None:
    text = teams.TEXT.replace("    apt: [libgl1]\n", "    extras: [jupyter, devel]\n")
    (own,) = matrices.load(tmp_path, text).environments
    assert "jupyterlab" in own.asked and {"g++", "libpython3.11-dev"} <= set(own.apt)
    assert set(extras()) == {"jupyter", "devel"} and all(one.what for one in extras().values())


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("from: 2.15-cu12", "from: '2.99'", "no cell is called"),
        ("  vision:", "  debian12:", "reads like"),
        ("  vision:", "  ../x:", "expected a name"),
        ("    apt: [libgl1]", "    extras: [cuda]", "expected one of jupyter, devel"),
        ("[pandas, six]", "[pandas, tensorflow==2.16.1]", "the cell says which"),
        ("[pandas, six]", "['x @ https://example.com/x.whl']", "expected a requirement"),
        ("[libgl1]", "['libgl1;rm']", "Debian package name"),
        ("2024-06-01T00:00:00Z", "yesterday", "a time in UTC"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, old: str, new: str, why: str) -> None:
    with pytest.raises(MatrixError) as error:
        matrices.load(tmp_path, teams.TEXT.replace(old, new))
    assert why in error.value.message and "matrix.yaml:" in error.value.message


def test_one_that_adds_nothing_is_refused(tmp_path: Path) -> None:
    text = teams.TEXT.replace("    requirements: [pandas, six]\n    apt: [libgl1]\n", "")
    with pytest.raises(MatrixError, match="nothing that it adds"):
        matrices.load(tmp_path, text)


def test_a_kept_matrix_has_them_too(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_text(teams.TEXT)
    memo = Memo(tmp_path / "memo")
    first = cached_matrix(path, memo)
    assert first.environments and cached_matrix(path, memo) == first


def test_all_cells_of_a_workspace_are_the_rows_and_the_teams(tmp_path: Path) -> None:
    place = small.workspace(tmp_path, teams.TEXT)
    assert [cell.name for cell in place.cells((), every=True)] == [small.CELL, "vision"]
    assert place.tags(place.matrix.environments[0]) == ("tfenv:vision",)
    assert place.tags(place.matrix.environments[0], ending="-unlocked") == ("tfenv:vision-unlocked",)
