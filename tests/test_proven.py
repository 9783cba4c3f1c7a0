"""What reports prove of cells, in `tfenv list`, and which cell `tfenv explain --gpu` takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import small
from tfenv import cli, digest, report
from tfenv.digest import Digest
from tfenv.lockfile import lock_hash
from tfenv.proven import Proven, proven, verified_on
from tfenv.report import Check, Host, Report
from tfenv.workspace import Workspace

MANIFEST, OTHER = ("sha256:" + letter * 64 for letter in "12")
SECOND = small.CELL.replace("debian12", "debian13")
H200 = Host(gpus=("NVIDIA H200",), driver="580.159.04")
TWO = Host(gpus=("NVIDIA H200", "NVIDIA H200"), driver="580.159.04")


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return small.place(tmp_path, monkeypatch, small.TWO_BASES).workspace


def reported(team: Workspace, name: str, **changes: Any) -> None:
    """Record a digest of a cell, and a report."""
    (cell,) = team.cells((name,))
    folder = team.folder(cell)
    of = lock_hash(team.lock(cell))
    made = Digest(
        inputs="a" * 64, lock=of, manifest=MANIFEST, config=MANIFEST, diff_ids=(), layer_bytes=(), builder="x"
    )
    (folder / digest.FILE_NAME).write_text(digest.dump(made))
    values: dict[str, Any] = {"verdict": "pass", "host": H200, "digest": MANIFEST, "suite": "full"}
    values |= {"checks": (Check(name="gpu", status="pass"),), "started": 1796044022355, "seconds": 1.0}
    report.write(Report(image=name, suite_hash="e" * 64, **{**values, **changes}), folder / "reports")


def found(team: Workspace, name: str) -> Proven:
    (cell,) = team.cells((name,))
    return proven(team, cell, team.find_lock(cell))


def listed(capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    capsys.readouterr()
    assert cli.run(["list", *more]) == 0
    return capsys.readouterr().out.splitlines()


def test_list_says_verified_and_where(team: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    reported(team, SECOND, host=TWO)
    first, second = listed(capsys)
    assert first.split("  ")[1] == "locked" and second.split("  ")[1] == "verified (2 x NVIDIA H200)"
    told = json.loads("".join(listed(capsys, "--json")))
    assert [of["verified"] for of in told] == [[], ["2 x NVIDIA H200"]]
    assert [of["locked"] for of in told] == [True, True]


@pytest.mark.parametrize(
    "changes",
    [
        {"digest": OTHER},
        {"verdict": "unverified", "host": Host(), "reason": "no GPU"},
        {"stand_in": "nvidia/cuda:12.2.2"},
    ],
)
def test_what_proves_nothing_is_not_called_verified(
    team: Workspace, capsys: pytest.CaptureFixture[str], changes: dict[str, Any]
) -> None:
    reported(team, SECOND, **changes)
    assert listed(capsys)[1].split("  ")[1] == "locked"
    assert found(team, SECOND) == Proven()


def test_what_failed_is_called_so(team: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    reported(team, SECOND, verdict="fail", checks=(Check(name="gpu", status="fail"),))
    assert listed(capsys)[1].split("  ")[1] == "failed a check (NVIDIA H200)"
    (cell,) = team.cells((SECOND,))
    assert verified_on(team)(cell, frozenset({"9.0"})) == ""


def test_a_damaged_report_proves_nothing_and_stops_no_list(
    team: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    reported(team, SECOND)
    (path,) = team.images.glob(f"{SECOND}/reports/*/{report.CTRF}")
    path.write_text("{")
    assert listed(capsys)[1].split("  ")[1] == "locked"
    assert found(team, SECOND).damaged


def test_where_a_cell_was_verified(team: Workspace) -> None:
    reported(team, SECOND)
    (cell,), (other,) = team.cells((SECOND,)), team.cells((small.CELL,))
    where = verified_on(team)
    assert where(cell, frozenset({"9.0"})) == "NVIDIA H200, driver 580.159.04, 2026-11-30"
    assert where(cell, frozenset({"8.0"})) == where(cell, frozenset({"8.0", "9.0"})) == ""
    assert where(cell, frozenset()) == where(other, frozenset({"9.0"})) == ""


def test_explain_takes_the_verified_one_of_equal_cells(
    team: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    def best(gpu: str) -> dict[str, Any]:
        capsys.readouterr()
        assert cli.run(["explain", "--gpu", gpu, "--driver", "580", "--json"]) == 0
        (choice,) = json.loads(capsys.readouterr().out)["choices"]
        return dict(choice)

    assert (best("H200")["cell"], best("H200")["verified"]) == (small.CELL, "")
    reported(team, SECOND)
    assert (best("H100")["cell"], best("H100")["verified"][:11]) == (SECOND, "NVIDIA H200")
    assert (best("A100")["cell"], best("A100")["verified"]) == (small.CELL, "")
    reported(team, small.CELL)
    assert best("H200")["cell"] == small.CELL
    capsys.readouterr()
    cli.run(["explain", "--gpu", "H200"])
    assert "verified on NVIDIA H200, driver 580.159.04, 2026-11-30" in capsys.readouterr().out


def test_explain_of_a_cell_says_where_it_was_verified_or_which_other_one_was(
    team: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    release = small.CELL.split("-")[0]

    def told(name: str, *more: str) -> tuple[str, str]:
        capsys.readouterr()
        assert cli.run(["explain", name, *more, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        return found["verified"], (found["instead"] or {"cell": ""})["cell"]

    assert told(release, "--gpu", "H200") == ("", "")
    reported(team, SECOND)
    assert told(release, "--gpu", "H200") == ("", SECOND)
    assert told(SECOND, "--gpu", "H200") == ("NVIDIA H200, driver 580.159.04, 2026-11-30", "")
    assert told(release) == told(release, "--gpu", "A100") == ("", "")
    capsys.readouterr()
    cli.run(["explain", release, "--gpu", "H200"])
    said = capsys.readouterr().out
    assert "another cell of this release was verified" in said and f"({SECOND})\n    on NVIDIA H200" in said
    reported(team, SECOND, verdict="fail", checks=(Check(name="gpu", status="fail"),), started=1796044022356)
    assert told(release, "--gpu", "H200") == ("", "")
