"""One rule gives every cell its tags."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrices import TEXT, expand, load, made_up, specs
from tfenv.model import Matrix
from tfenv.tags import TAG, aliases, all_aliases, dated, owners
from tfenv.versions import is_final, minor, order

WIDE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def _matrix(folder: Path, *releases: str, pythons: str = '"3.11"') -> Matrix:
    head, row = TEXT[: TEXT.index("  - tensorflow")], TEXT[TEXT.index("  - tensorflow") :]
    text = head + "".join(row.replace("2.15.1", release) for release in releases)
    text = text.replace('pythons: ["3.11"]', f"pythons: [{pythons}]")
    text = text.replace("    epoch: 2023", '    provided_pythons: ["3.9"]\n    epoch: 2023')
    return load(folder, text, made_up)


def _owner(matrix: Matrix, alias: str) -> str:
    cell = owners(matrix)[alias]
    return f"{cell.row.tensorflow} {cell.python} {cell.base.name}"


def test_the_tags_of_the_only_cell_most_specific_first(tmp_path: Path) -> None:
    matrix = load(tmp_path, TEXT)
    assert aliases(matrix.cells[0], matrix) == (
        "2.15.1-cu12.2-cudnn8.9-py3.11-debian12",
        "2.15.1-cu12-py3.11-debian12",
        "2.15.1-cu12-py3.11",
        "2.15.1-cu12-debian12",
        "2.15.1-cu12",
        "2.15.1-py3.11-debian12",
        "2.15.1-py3.11",
        "2.15.1-debian12",
        "2.15.1",
        "2.15-cu12-py3.11-debian12",
        "2.15-cu12-py3.11",
        "2.15-cu12-debian12",
        "2.15-cu12",
        "2.15-py3.11-debian12",
        "2.15-py3.11",
        "2.15-debian12",
        "2.15",
        "latest-py3.11-debian12",
        "latest-py3.11",
        "latest-debian12",
        "latest",
    )


def test_a_minor_release_means_its_highest_patch_by_number(tmp_path: Path) -> None:
    matrix = _matrix(tmp_path, "2.15.10", "2.15.9", "2.15.0.post1")
    assert _owner(matrix, "2.15") == "2.15.10 3.11 debian12"
    assert _owner(matrix, "2.15.0.post1") == "2.15.0.post1 3.11 debian12"


def test_latest_is_the_highest_release_by_number(tmp_path: Path) -> None:
    assert _owner(_matrix(tmp_path, "2.9.3", "2.16.2", "2.15.1"), "latest") == "2.16.2 3.11 debian12"


def test_a_release_candidate_has_no_short_tags(tmp_path: Path) -> None:
    matrix = _matrix(tmp_path, "2.15.1", "2.16.0rc0")
    assert _owner(matrix, "latest") == "2.15.1 3.11 debian12"
    assert "2.16" not in owners(matrix)
    assert _owner(matrix, "2.16.0rc0-cu12") == "2.16.0rc0 3.11 debian12"


def test_a_short_tag_belongs_to_the_default_python_and_the_others_have_a_suffix(tmp_path: Path) -> None:
    matrix = _matrix(tmp_path, "2.15.1", pythons='"3.9", "3.11"')
    assert _owner(matrix, "2.15-cu12") == "2.15.1 3.11 debian12"
    assert _owner(matrix, "2.15-cu12-py3.9") == "2.15.1 3.9 debian12"
    other = next(cell for cell in matrix.cells if cell.python == "3.9")
    assert all("-py3.9" in alias for alias in aliases(other, matrix))


def test_a_short_tag_belongs_to_the_default_base_and_the_others_have_a_suffix(tmp_path: Path) -> None:
    extra = TEXT[TEXT.index("  debian12:") : TEXT.index("cuda_sets:")]
    text = TEXT.replace("cuda_sets:", extra.replace("debian12", "debian13") + "cuda_sets:")
    text = text.replace("bases: [debian12]", "bases: [debian13, debian12]")
    matrix = load(tmp_path, text)
    assert _owner(matrix, "2.15") == "2.15.1 3.11 debian12"
    assert _owner(matrix, "2.15-debian13") == "2.15.1 3.11 debian13"
    matrix = load(tmp_path, text + "    default_base: debian13\n")
    assert _owner(matrix, "2.15") == "2.15.1 3.11 debian13"


def test_dated() -> None:
    assert dated("2.15-cu12", date(2026, 3, 9)) == "2.15-cu12-20260309"


@WIDE
@given(specs())
def test_no_tag_belongs_to_two_cells_and_every_tag_is_valid(tmp_path: Path, spec: dict[str, Any]) -> None:
    matrix = expand(tmp_path, spec)
    seen: dict[str, str] = {}
    for cell in matrix.cells:
        own = aliases(cell, matrix)
        assert own[0] == cell.name
        assert len(set(own)) == len(own)
        for alias in own:
            assert TAG.fullmatch(alias)
            assert TAG.fullmatch(dated(alias, date(2026, 11, 30)))
            assert seen.setdefault(alias, cell.name) == cell.name
    assert seen.keys() == owners(matrix).keys()


@WIDE
@given(specs(), st.data())
def test_a_canonical_name_never_moves(tmp_path: Path, spec: dict[str, Any], data: st.DataObject) -> None:
    before = expand(tmp_path, spec)
    more = data.draw(specs())
    merged = {**more, "bases": {**more["bases"], **spec["bases"]}, "cuda_sets": spec["cuda_sets"]}
    known = {row["tensorflow"] for row in spec["rows"]}
    merged["rows"] = [*spec["rows"], *(row for row in more["rows"] if row["tensorflow"] not in known)]
    after = owners(expand(tmp_path, merged))
    for cell in before.cells:
        assert after[cell.name].name == cell.name


@WIDE
@given(specs())
def test_short_tags_mean_the_default_cell_of_the_highest_final_release(
    tmp_path: Path, spec: dict[str, Any]
) -> None:
    matrix = expand(tmp_path, spec)
    final = [row for row in matrix.rows if is_final(row.tensorflow)]
    by_name = owners(matrix)
    assert ("latest" in by_name) == bool(final)
    for row in final:
        highest = max(
            (r for r in final if minor(r.tensorflow) == minor(row.tensorflow)),
            key=lambda r: order(r.tensorflow),
        )
        cell = by_name[minor(row.tensorflow)]
        assert (cell.row.tensorflow, cell.python, cell.base.name) == (
            highest.tensorflow,
            highest.default_python,
            highest.default_base,
        )
    if final:
        assert by_name["latest"].row.tensorflow == max((r.tensorflow for r in final), key=order)


def test_all_aliases_is_aliases_of_each(tmp_path: Path) -> None:
    matrix = _matrix(tmp_path, "2.15.1", "2.16.2", pythons='"3.9", "3.11"')
    assert all_aliases(matrix) == {cell.name: aliases(cell, matrix) for cell in matrix.cells}
    assert not any(re.search(r"-\d{8}$", alias) for names in all_aliases(matrix).values() for alias in names)
