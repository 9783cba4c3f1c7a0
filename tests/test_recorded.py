"""An image that is known to be another cell's is refused before anything runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
from tfenv import cli, digest, verify_elsewhere
from tfenv.digest import Digest
from tfenv.errors import UsageError
from tfenv.recorded import cell_of, require_own
from tfenv.workspace import Workspace

OWN, OTHERS, UNKNOWN = ("sha256:" + letter * 64 for letter in "123")
OTHER = small.CELL.replace("debian12", "debian13")
RECORDED = Digest(
    inputs="a" * 64, lock="b" * 64, manifest=OWN, config=OWN, diff_ids=(), layer_bytes=(), builder="x"
)


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    made = small.place(tmp_path, monkeypatch, small.TWO_BASES).workspace
    for name, manifest in ((small.CELL, OWN), (OTHER, OTHERS)):
        (made.images / name / digest.FILE_NAME).write_text(digest.dump(replace(RECORDED, manifest=manifest)))
    return made


def test_whose_a_digest_is(team: Workspace) -> None:
    found = [cell_of(team, one) for one in (OWN, OTHERS, UNKNOWN)]
    assert [cell.name if cell else None for cell in found] == [small.CELL, OTHER, None]


def test_its_own_and_one_that_nobody_has_recorded_are_taken(team: Workspace) -> None:
    (cell,) = team.cells((small.CELL,))
    require_own(team, cell, OWN, "DIR")
    require_own(team, cell, UNKNOWN, "DIR")
    with pytest.raises(UsageError, match=f"^DIR is {OTHER}, not {small.CELL}"):
        require_own(team, cell, OTHERS, "DIR")


def test_a_damaged_digest_of_a_third_cell_does_not_matter(team: Workspace) -> None:
    (team.images / OTHER / digest.FILE_NAME).write_text("{")
    (cell,) = team.cells((small.CELL,))
    require_own(team, cell, UNKNOWN, "DIR")


@pytest.mark.parametrize("line", [["verify", small.CELL], ["stress", small.CELL, "--allow-cpu"]])
@pytest.mark.parametrize(("manifest", "refused"), [(OTHERS, True), (OWN, False), (UNKNOWN, False)])
def test_an_unpacked_image_of_another_cell_is_not_run(
    team: Workspace,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    line: list[str],
    manifest: str,
    refused: bool,
) -> None:
    ran: list[bool] = []

    def run(*_args: Any, **_more: Any) -> Any:
        ran.append(True)
        raise UsageError("enough", remedy="")

    monkeypatch.setattr("tfenv.pipeline.declared", lambda cell, lock, image: {})
    monkeypatch.setattr(verify_elsewhere, "in_rootfs", run)
    monkeypatch.setattr("tfenv.load.session.run_load", run)
    monkeypatch.setattr("tfenv.load.session.there", lambda gpus, smi: gpus)
    (tmp_path / "root/usr").mkdir(parents=True)
    (tmp_path / "root.json").write_text(json.dumps({"manifest": manifest, "config": {}}))
    typed = [*line, "--rootfs", str(tmp_path / "root")]
    assert cli.run(typed) == 2
    assert bool(ran) is not refused
    assert (f"is {OTHER}, not {small.CELL}" in capsys.readouterr().err) is refused


def test_lines_that_are_said_to_be_of_another_cells_image(team: Workspace) -> None:
    (cell,) = team.cells((small.CELL,))
    assert verify_elsewhere.image_digest(team, cell, UNKNOWN) == UNKNOWN
    with pytest.raises(UsageError, match=f"what --digest names is {OTHER}"):
        verify_elsewhere.image_digest(team, cell, OTHERS)
