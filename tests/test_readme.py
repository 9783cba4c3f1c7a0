"""What the README says of GPUs and drivers is what the facts say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tfenv import facts
from tfenv.compat.model import Query
from tfenv.compat.table import known
from tfenv.explaining import answer
from tfenv.matrix import load_matrix
from tfenv.versions import minor, order

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = TEXT.split("## Which image for my GPU?")[1].split("\n## ")[0]
ROWS = re.findall(r"^\| ([A-Z].*?) \| *(.*?) *\| *(.*?) *\|$", SECTION, re.MULTILINE)[1:]
MATRIX = load_matrix(ROOT / "matrix.yaml")


def _releases(said: str) -> set[str]:
    """``2.4, 2.8 to 2.15`` -> the minor releases of the matrix that are meant."""
    there = {minor(row.tensorflow) for row in MATRIX.rows}
    meant: set[str] = set()
    for part in filter(None, said.split(", ")):
        first, _, last = part.partition(" to ")
        meant |= {one for one in there if order(first) <= order(one) <= order(last or first)}
    return meant


@pytest.mark.parametrize(
    ("gpu", "runs", "limited"), [(gpu, row[1], row[2]) for row in ROWS for gpu in row[0].split(", ")]
)
def test_the_table_of_gpus(gpu: str, runs: str, limited: str) -> None:
    choices = answer(Query(gpus=(gpu,)), known(), MATRIX).choices
    free = {minor(choice.cell.split("-")[0]) for choice in choices if not choice.limits}
    assert free == _releases(runs)
    assert {minor(choice.cell.split("-")[0]) for choice in choices} - free == _releases(limited)


@pytest.mark.parametrize(
    ("release", "cuda"), [("2.4.4", "11.0"), ("2.14.1", "11.8"), ("2.15.1", "12.2"), ("2.21.0", "12.9")]
)
def test_the_lowest_drivers(release: str, cuda: str) -> None:
    driver = facts.driver_floor(release, cuda)[0].driver
    up_to = "up to 2.14" if order(release) < order("2.15") else "from 2.15 on"
    assert re.search(rf"{re.escape(driver)}( or newer)? {up_to}", SECTION)
