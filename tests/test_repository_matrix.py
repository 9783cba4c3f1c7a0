"""The repository's own matrix: every cell's name, tags and inputs, and who owns the short tags."""

from __future__ import annotations

from collections import Counter
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from tfenv import facts, interpreters, tags
from tfenv.cells import Name, parse_name, resolve
from tfenv.compat.serving import why_not_served
from tfenv.matrix import load_matrix
from tfenv.model import Cell, Matrix
from tfenv.refusals import brings_cuda
from tfenv.versions import is_final, major, minor, order
from tfenv.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent


@cache
def matrix() -> Matrix:
    return load_matrix(ROOT / "matrix.yaml")


@cache
def owned() -> dict[str, Cell]:
    return tags.owners(matrix())


def test_every_name_parses_into_what_the_cell_is() -> None:
    for cell in matrix().cells:
        assert parse_name(cell.name) == Name(
            release=cell.row.tensorflow,
            cuda=cell.cuda_set.cuda,
            cudnn=cell.cuda_set.cudnn,
            python=cell.python,
            base=cell.base.name,
        )
    for name, why in matrix().refused:
        assert parse_name(name) is not None and why


def test_nothing_is_there_twice() -> None:
    names = [cell.name for cell in matrix().cells] + [name for name, _ in matrix().refused]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_tag_is_valid_and_of_one_cell() -> None:
    seen: dict[str, str] = {}
    for name, own in tags.all_aliases(matrix()).items():
        assert own[0] == name
        for tag in own:
            assert tags.TAG.fullmatch(tag) and tags.TAG.fullmatch(tags.dated(tag, date(2026, 11, 30)))
            assert seen.setdefault(tag, name) == name
    assert {tag: cell.name for tag, cell in owned().items()} == seen


@pytest.mark.parametrize("ending", ["", "-unlocked"])
def test_no_image_gets_the_name_of_another(ending: str) -> None:
    workspace = Workspace(ROOT, {})
    workspace.__dict__["matrix"] = matrix()
    names = [name for cell in matrix().cells for name in workspace.tags(cell, ending=ending)]
    assert len(set(names)) == len(names)
    for cell in matrix().cells:
        locked, unlocked = workspace.image_names(cell)
        assert unlocked == f"{locked}-unlocked" and tags.TAG.fullmatch(unlocked.partition(":")[2])


def test_every_tag_leads_to_its_cell() -> None:
    for tag in ("latest", *(minor(row.tensorflow) for row in matrix().rows if is_final(row.tensorflow))):
        assert resolve(matrix(), tag) is owned()[tag]
    for cell in matrix().cells:
        assert resolve(matrix(), f"tfenv:{cell.name}") == cell


# As people type them. The rule is in test_tags.py; these are what it gives today.
OWNERS = {
    "latest": "2.21.0-cu12.9-cudnn9.10-py3.11-debian12",
    "2.21-cu12": "2.21.0-cu12.9-cudnn9.10-py3.11-debian12",
    "2.20": "2.20.0-cu12.5-cudnn9.3-py3.11-debian12",
    "2.20-py3.13": "2.20.0-cu12.5-cudnn9.3-py3.13-debian13",
    "2.20-py3.9": "2.20.0-cu12.5-cudnn9.3-py3.9-debian11",
    "2.20-ubuntu22.04": "2.20.0-cu12.6-cudnn9.5-py3.11-ubuntu22.04",
    "2.18-cu12": "2.18.1-cu12.5-cudnn9.3-py3.11-debian12",
    "2.16-cu12": "2.16.2-cu12.3-cudnn8.9-py3.11-debian12",
    "2.16.1": "2.16.1-cu12.3-cudnn8.9-py3.11-debian12",
    "2.15": "2.15.1-cu12.2-cudnn8.9-py3.11-debian12",
    "2.15-cu12-py3.10": "2.15.1-cu12.2-cudnn8.9-py3.10-debian12",
    "2.15.0.post1-cu12": "2.15.0.post1-cu12.2-cudnn8.9-py3.11-debian12",
    "2.12-cu11": "2.12.1-cu11.8-cudnn8.6-py3.11-debian12",
    "2.12-cu11-ubuntu22.04": "2.12.1-cu11.8-cudnn8.9-py3.11-ubuntu22.04",
    "2.11-cu11": "2.11.1-cu11.8-cudnn8.6-py3.9-debian11",
    "2.11-py3.10": "2.11.1-cu11.8-cudnn8.6-py3.10-debian12",
    "2.5": "2.5.3-cu11.8-cudnn8.6-py3.9-debian11",
    "2.5-py3.8-ubuntu20.04": "2.5.3-cu11.2-cudnn8.1-py3.8-ubuntu20.04",
    "2.22.0rc0": "2.22.0rc0-cu12.9-cudnn9.10-py3.11-debian12",
}


@pytest.mark.parametrize("tag", OWNERS)
def test_whom_a_tag_belongs_to(tag: str) -> None:
    assert owned()[tag].name == OWNERS[tag]


@pytest.mark.parametrize(
    "tag", ["2.22", "2.22-cu12", "2.15-cu11", "2.21-py3.9", "2.20-debian10", "2.11-cu12"]
)
def test_what_is_nobodys_tag(tag: str) -> None:
    assert tag not in owned()


def _best(cells: list[Cell]) -> Cell:
    """The rule, said once more: highest release, the row's default base, its default Python."""
    release = max((cell.row.tensorflow for cell in cells), key=order)
    (best,) = [
        cell
        for cell in cells
        if cell.row.tensorflow == release
        and (cell.base.name, cell.python) == (cell.row.default_base, cell.row.default_python)
    ]
    return best


def test_short_tags_are_of_the_default_cell_of_the_highest_release() -> None:
    final = [cell for cell in matrix().cells if is_final(cell.row.tensorflow)]
    assert owned()["latest"] == _best(final)
    for line in {minor(cell.row.tensorflow) for cell in final}:
        own = [cell for cell in final if minor(cell.row.tensorflow) == line]
        best = _best(own)
        assert owned()[line] == best
        assert owned()[f"{line}-cu{major(best.cuda_set.cuda)}"] == best


def test_a_row_defaults_to_debian_and_to_a_python_of_its_own_where_it_can() -> None:
    for row in matrix().rows:
        cells = [cell for cell in matrix().cells if cell.row == row]
        default = _best(cells)
        if any(cell.base.kind == "debian" for cell in cells):
            assert default.base.kind == "debian" and default.base.brings(default.python)


def test_every_cell_has_one_source_of_libraries_that_serve() -> None:
    for cell in matrix().cells:
        compiled = facts.compiled(cell.row.tensorflow)
        assert cell.python in compiled.pythons
        assert why_not_served(compiled, cuda=cell.cuda_set.cuda, cudnn=cell.cuda_set.cudnn) is None
        if cell.cuda_from == "base":
            assert brings_cuda(cell.image)
        else:
            assert not cell.image or not brings_cuda(cell.image)
            assert any(wheel.startswith("nvidia-cudnn-") for wheel in cell.cuda_wheels)
        majors = {wheel.partition("==")[0].rpartition("-cu")[2] for wheel in cell.cuda_wheels}
        assert majors <= {major(cell.cuda_set.cuda)}, "wheels of one CUDA major version"
        assert any(wheel.startswith("nvidia-cuda-nvcc-") for wheel in cell.cuda_wheels), "ptxas"


def test_the_provider_has_every_python_that_no_base_brings() -> None:
    for cell in matrix().cells:
        if not cell.base.brings(cell.python):
            assert interpreters.interpreter(cell.python).version.startswith(f"{cell.python}.")


def test_accepted_drivers_are_known_of_every_cell() -> None:
    for cell in matrix().cells:
        told = facts.require_cuda(cell.row.tensorflow, cell.cuda_set.cuda)
        assert told.startswith("cuda>=")


def test_layers_of_one_set_have_one_date() -> None:
    """Else cells of one set would not share its layer."""
    dates: dict[str, set[int]] = {}
    for cell in matrix().cells:
        dates.setdefault(cell.cuda_set.name, set()).add(cell.cuda_set.epoch)
        assert cell.epoch >= cell.cuda_set.epoch and cell.epoch >= cell.base.epoch
    assert {len(found) for found in dates.values()} == {1}
