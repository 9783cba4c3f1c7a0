"""From what a user types to the one cell that is meant, or to a message that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrices import TEXT, changed, expand, load, specs
from tfenv.cells import Name, parse_name, resolve
from tfenv.errors import EXIT_USAGE, UsageError
from tfenv.model import Matrix
from tfenv.tags import all_aliases

WIDE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
FULL = "2.15.1-cu12.2-cudnn8.9-py3.11-debian12"


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    """2.15.1 for Python 3.11, and for 3.12 refused."""
    return load(tmp_path, changed('pythons: ["3.11"]\n    bases', 'pythons: ["3.11", "3.12"]\n    bases'))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (FULL, Name(release="2.15.1", cuda="12.2", cudnn="8.9", python="3.11", base="debian12")),
        ("2.15-cu12", Name(release="2.15", cuda="12")),
        ("latest-py3.9", Name(release="latest", python="3.9")),
        ("2.22.0rc0", Name(release="2.22.0rc0")),
        ("2.15.0.post1-ubuntu22.04", Name(release="2.15.0.post1", base="ubuntu22.04")),
        ("cu12", Name(cuda="12")),
        ("debian12", Name(base="debian12")),
        ("2.15-cu12-20260309", Name(release="2.15", cuda="12", day="20260309")),
    ],
)
def test_parse_name(name: str, parts: Name) -> None:
    assert parse_name(name) == parts


@pytest.mark.parametrize(
    "name", ["", "hello", "2.15_cu12", "2.15-", "-cu12", "2.15-cu12\n", "2.15-py", "2..15"]
)
def test_what_is_no_name(name: str) -> None:
    assert parse_name(name) is None


@pytest.mark.parametrize(
    "name", [FULL, "2.15", "2.15-cu12", "latest", "tfenv:2.15-cu12", " 2.15.1 ", f"tfenv:{FULL}"]
)
def test_names_of_the_cell(matrix: Matrix, name: str) -> None:
    assert resolve(matrix, name).name == FULL


def test_the_matrix_own_repository_may_lead(tmp_path: Path) -> None:
    text = changed("repository: tfenv", "repository: registry.example.com:5000/team/tf")
    matrix = load(tmp_path, text)
    assert resolve(matrix, "registry.example.com:5000/team/tf:2.15").name == FULL
    assert resolve(matrix, "tfenv:2.15").name == FULL


def _refusal(matrix: Matrix, name: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        resolve(matrix, name)
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("2.15-cu11", "2.15-cu12"), ("2.51.1", "2.15.1"), ("lattest", "latest"), ("2.15-cuu12", "2.15-cu12")],
)
def test_a_wrong_name_gives_the_nearest(matrix: Matrix, wrong: str, near: str) -> None:
    error = _refusal(matrix, wrong)
    assert repr(wrong) in error.message
    assert near in error.remedy


@pytest.mark.parametrize("name", ["", "x", "x" * 100_000, "\n", "tfenv:", "%s", "../../etc"])
def test_what_is_like_no_name_gets_the_way_to_all(matrix: Matrix, name: str) -> None:
    error = _refusal(matrix, name)
    assert "tfenv list" in error.remedy
    assert len(error.message) < 200


@pytest.mark.parametrize("name", ["cu12", "2", "py3.11", "debian12", "2-cu12.2"])
def test_a_name_that_says_too_little_lists_what_it_could_mean(matrix: Matrix, name: str) -> None:
    assert f"it could mean {FULL}" in _refusal(matrix, name).message


@pytest.mark.parametrize("name", ["2.15.1-cu12.2-cudnn8.9-py3.12-debian12", "2.15-py3.12", "latest-py3.12"])
def test_a_refused_combination_says_why(matrix: Matrix, name: str) -> None:
    error = _refusal(matrix, name)
    assert "is refused" in error.message
    assert "TensorFlow 2.15.1 has no wheel for Python 3.12" in error.message


def test_a_release_without_facts_says_why(tmp_path: Path) -> None:
    row = TEXT[TEXT.index("  - tensorflow") :].replace("2.15.1", "2.98.0")
    assert "is not known" in _refusal(load(tmp_path, TEXT + row), "2.98").message


def test_a_dated_tag_is_not_mistaken_for_its_alias(matrix: Matrix) -> None:
    assert "2.15-cu12" in _refusal(matrix, "2.15-cu12-20260309").remedy


@WIDE
@given(specs())
def test_every_tag_leads_to_its_cell(tmp_path: Path, spec: dict[str, Any]) -> None:
    matrix = expand(tmp_path, spec)
    for name, own in all_aliases(matrix).items():
        for alias in own:
            assert resolve(matrix, alias).name == name
            assert parse_name(alias) is not None


@WIDE
@given(name=st.text(max_size=60))
def test_any_text_is_a_cell_or_a_usage_error(matrix: Matrix, name: str) -> None:
    try:
        resolve(matrix, name)
    except UsageError as error:
        assert error.remedy
