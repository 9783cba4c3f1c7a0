"""The reports that are committed beside their cells can be read, and their pages are those of their data."""

from __future__ import annotations

from pathlib import Path

import pytest
from tfenv import report
from tfenv.load import read_bench

IMAGES = Path(__file__).parent.parent / "images"
REPORTS = sorted(path.parent for path in IMAGES.glob(f"*/reports/*/{report.CTRF}"))
BENCHES = sorted(IMAGES.glob("*/reports/bench-*/bench.json"))


def short(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("folder", REPORTS, ids=short)
def test_a_verdict_is_kept_under_its_own_name_and_its_page_is_made_of_it(folder: Path) -> None:
    found = report.read(folder)
    names = (found.key, f"{found.key}-unverified", f"{found.key}-earlier")
    assert folder.name in names and found.image == folder.parent.parent.name
    page = (folder / report.MARKDOWN).read_text(encoding="utf-8")
    assert page == report.to_markdown(found), "report.write(report.read(folder), folder.parent) makes it anew"


@pytest.mark.parametrize("path", BENCHES, ids=lambda path: path.parent.name)
def test_a_bench_can_be_read_and_is_of_its_cell(path: Path) -> None:
    assert read_bench(path)[0] == path.parent.parent.parent.name


def test_there_are_some() -> None:
    assert REPORTS and BENCHES
