"""A team's own environments on the matrix page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import small
import teams
from small import Place
from tfenv import cli, digest, facts, report
from tfenv.digest import Digest
from tfenv.errors import EXIT_FAILED
from tfenv.lock import write_lock
from tfenv.lockfile import lock_hash
from tfenv.model import Environment
from tfenv.page import Page, files, to_html, to_markdown
from tfenv.page.html import data
from tfenv.report import Check, Host, Report
from tfenv.team.asking import in_short

MANIFEST = "sha256:" + "1" * 64
EXTRA = teams.TEXT.replace("    apt: [libgl1]\n", "    apt: [libgl1]\n    extras: [jupyter]\n")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return small.place(tmp_path, monkeypatch, teams.TEXT)


def page_of(here: Place) -> Page:
    return files.page_of(here.workspace, facts.compiled)


def record(here: Place) -> None:
    """Record a digest of the environment, and a report of it."""
    cell = teams.environment(here.workspace)
    folder = here.workspace.folder(cell)
    made = Digest(
        inputs="a" * 64,
        lock=lock_hash(here.workspace.lock(cell)),
        manifest=MANIFEST,
        config="sha256:" + "2" * 64,
        diff_ids=(),
        layer_bytes=(),
        builder="x",
    )
    (folder / digest.FILE_NAME).write_text(digest.dump(made))
    told = Report(
        image="tfenv:vision",
        digest=MANIFEST,
        suite="full",
        suite_hash="e" * 64,
        verdict="pass",
        host=Host(gpus=("NVIDIA H200",), driver="580.159.04"),
        checks=(Check(name="gpu", status="pass"),),
        started=1796044022355,
        seconds=1.0,
    )
    report.write(told, folder / "reports")


def test_an_environment_has_its_place_beside_the_cells(here: Place) -> None:
    teams.lock(here.workspace)
    made = page_of(here)
    (own,) = made.own
    assert (own.alias, own.cell.name, own.number) == ("vision", "vision", len(made.entries))
    assert own.cell.name not in [entry.cell.name for entry in made.entries]
    assert own.standing.kind == "locked"


def test_gpus_do_with_it_what_they_do_with_its_cell(here: Place) -> None:
    made = page_of(here)
    cell = teams.environment(here.workspace)
    (row,) = (entry for entry in made.entries if entry.cell.name == cell.start.name)
    cells = data(made)["cells"]
    assert cells[made.own[0].number][0] == cells[row.number][0]


def test_without_a_lock_nothing_is_claimed(here: Place) -> None:
    assert page_of(here).own[0].standing.kind == "open"


def test_a_report_of_its_own_digest_proves_it(here: Place) -> None:
    teams.lock(here.workspace)
    record(here)
    (own,) = page_of(here).own
    assert (own.standing.kind, own.standing.digest, bool(own.proven)) == ("verified", MANIFEST, True)


def test_where_the_row_has_moved_on_that_is_said_and_the_proof_is_gone(here: Place) -> None:
    cell = teams.lock(here.workspace)
    record(here)
    write_lock(replace(here.workspace.lock(cell.start), base_epoch=1_700_000_000), here.workspace.images)
    (own,) = page_of(here).own
    assert own.standing.kind == "locked"
    assert any("has moved on" in sentence for sentence in own.standing.sentences)


def test_what_it_stands_on_and_adds_is_said(here: Place) -> None:
    teams.lock(here.workspace)
    html = to_html(page_of(here))
    start = teams.environment(here.workspace).start.name
    assert 'id="env-vision"' in html and f'href="#{start}"' in html and f'id="{start}"' in html
    assert "pandas, six; Debian: libgl1" in html
    table = to_markdown(page_of(here), "matrix.html")
    assert f"| **vision** | {start} | `pandas, six; Debian: libgl1` | ○ locked, not built |" in table


def test_without_environments_there_is_no_word_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = page_of(small.place(tmp_path, monkeypatch))
    assert made.own == ()
    assert "repository's own" not in to_html(made)
    assert "of this repository" not in to_markdown(made, "matrix.html")


def test_of_an_extra_the_name_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = teams.environment(small.place(tmp_path, monkeypatch, EXTRA).workspace)
    assert isinstance(cell, Environment) and "jupyterlab" in cell.asked
    assert in_short(cell) == "pandas, six; Debian: libgl1; extras: jupyter"


def test_a_page_that_lacks_an_environment_is_not_current(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["page"]) == 0
    assert cli.run(["page", "--check"]) == 0
    teams.lock(here.workspace)
    assert cli.run(["page", "--check"]) == EXIT_FAILED


@pytest.mark.browser
def test_a_picked_gpu_is_answered_for_environments_too(here: Place, tmp_path: Path) -> None:
    import browsers

    teams.lock(here.workspace)
    file = tmp_path / "matrix.html"
    file.write_text(to_html(page_of(here)), encoding="utf-8")
    with browsers.browser() as browser:
        page = browser.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{file.as_uri()}#gpu=H100&driver=580")
        assert page.get_attribute("#env-vision", "data-state") == "limited"
        assert "2 run with a limit" in page.inner_text("#count")
        page.fill("#driver", "470")
        page.check("#only")
        assert not page.is_visible("#own") and not page.is_visible("nav a[href='#own']")
        assert faults == []
