"""A team's own repository: started from tfenv's rows, environments added whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import teams
from ruamel.yaml import YAML
from tfenv import cli, lock, render, resources
from tfenv.cells import resolve
from tfenv.errors import MatrixError, UsageError
from tfenv.lock import require_current
from tfenv.team import adding, edit, start
from tfenv.team.conflict import ConflictError
from tfenv.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent
CELL = "2.15.1-cu12.2-cudnn8.9-py3.11-debian12"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TFENV_MATRIX", raising=False)
    monkeypatch.setenv("TFENV_CACHE", str(tmp_path / "cache"))


def never(*_: object) -> Any:
    raise AssertionError("nothing is resolved: tfenv brings the locks")


ROWS = lock.Resolvers(debian=never, wheels=never, uv=never, digest=never)


def begin(folder: Path, *names: str) -> Workspace:
    own = start.catalogue()
    start.start(folder, [resolve(own, name) for name in names or ("2.15-cu12",)], "tfenv", {})
    return Workspace(folder, {})


def test_every_row_can_be_a_teams_and_its_committed_lock_goes_on_holding(tmp_path: Path) -> None:
    own = start.catalogue()
    source = edit.round_trip().load(resources.own_matrix().read_text("utf-8"))
    for number, cell in enumerate(own.cells):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "matrix.yaml").write_text(edit.first_matrix(resources.own_matrix(), [cell], "tfenv"))
        (mine,) = Workspace(folder, {}).matrix.cells
        assert mine.name == cell.name
        committed = Workspace(ROOT, {}).find_lock(cell)
        if committed is not None:
            require_current(mine, committed, render.template_version(mine.base.kind))
    assert source["rows"], "nothing of tfenv's own was changed"


def test_two_cells_of_one_row_share_it(tmp_path: Path) -> None:
    names = ["2.15.1-cu12.2-cudnn8.9-py3.11-debian12", "2.15.1-cu12.2-cudnn8.9-py3.10-debian12"]
    place = begin(tmp_path / "team", *names)
    assert sorted(cell.name for cell in place.matrix.cells) == sorted(names)
    assert len(place.matrix.rows) == 1


def test_a_new_repository_has_what_it_needs_and_belongs_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["init", str(tmp_path / "team"), "--from", "2.15-cu12", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cells"] == [CELL]
    written = {
        p.relative_to(tmp_path / "team").as_posix() for p in (tmp_path / "team").rglob("*") if p.is_file()
    }
    assert {"matrix.yaml", *start.FILES, f"images/{CELL}/lock.json", f"images/{CELL}/digest.json"} <= written
    monkeypatch.chdir(tmp_path / "team")
    assert cli.run(["render", "--check"]) == 0
    assert cli.run(["lock", "--all", "--check"]) == 0


def test_what_comes_next_is_typed_in_the_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["init", "our team", "--from", "2.15-cu12"]) == 0
    assert "next: cd 'our team' && tfenv new NAME --from" in capsys.readouterr().out
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert cli.run(["init", "--from", "2.15-cu12"]) == 0
    assert "next: tfenv new NAME --from" in capsys.readouterr().out


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("ours\n")
    own = start.catalogue()
    _, kept = start.start(tmp_path, [resolve(own, "2.15-cu12")], "tfenv", {})
    assert kept == ["README.md"] and (tmp_path / "README.md").read_text() == "ours\n"
    with pytest.raises(UsageError, match="already"):
        start.start(tmp_path, [resolve(own, "2.15-cu12")], "tfenv", {})


def test_a_cell_that_does_not_exist_begins_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["init", str(tmp_path / "team"), "--from", "9.9"]) == 2
    assert not (tmp_path / "team").exists()


# The workflow.


def test_the_workflow_is_pinned_asks_for_no_rights_and_is_accepted_by_its_linters(tmp_path: Path) -> None:
    begin(tmp_path)
    file = tmp_path / ".github/workflows/environments.yml"
    text = file.read_text()
    workflow = YAML(typ="safe").load(text)
    assert workflow["permissions"] == {"contents": "read"}
    uses = set(re.findall(r"uses: (.*)", text))
    assert uses == {"actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"}
    for job in workflow["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 60
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "an expression in a script is code of whoever fills it"
    for tool, *arguments in (["actionlint", str(file)], ["zizmor", "--offline", "--quiet", str(file)]):
        program = str(Path(sys.executable).with_name(tool))
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_types_commands_that_exist(tmp_path: Path) -> None:
    begin(tmp_path)
    text = (tmp_path / ".github/workflows/environments.yml").read_text()
    typed = set(re.findall(r"\.venv/bin/tfenv (\w+)", text))
    assert typed == {"lock", "render", "list", "up"} and typed <= set(cli.COMMANDS)
    assert set(re.findall(r"`tfenv (\w+)", (tmp_path / "README.md").read_text())) <= set(cli.COMMANDS)


# Adding.


def wish(tmp_path: Path, name: str = "vision", text: str = "pandas\nsix\n", **more: Any) -> adding.Wish:
    file = tmp_path / "requirements.in"
    file.write_text(text)
    told: Mapping[str, Any] = {
        "start": "2.15-cu12",
        "files": (file,),
        "exclude_newer": "2024-06-01T00:00:00Z",
    }
    return adding.Wish(name=name, **{**told, **more})


def add(place: Workspace, what: adding.Wish) -> Any:
    return adding.add(Workspace(place.start, {}), what, rows=ROWS, resolvers=teams.resolvers())


def seen(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_one_is_added_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = begin(tmp_path / "team")
    before = (tmp_path / "team/matrix.yaml").read_text()
    made, _ = add(place, wish(tmp_path, apt=("libgl1",)))
    text = (tmp_path / "team/matrix.yaml").read_text()
    assert text.startswith(before) and f"from: {CELL}" in text, "by a name that never moves"
    assert made.name == "vision" and set(seen(tmp_path / "team/images/vision")) == {
        "lock.json",
        "Dockerfile",
        "requirements.lock",
    }
    monkeypatch.chdir(tmp_path / "team")
    assert cli.run(["render", "--check"]) == 0
    assert cli.run(["lock", "--all", "--check"]) == 0


def test_a_cell_that_the_team_has_not_yet_is_brought(tmp_path: Path) -> None:
    place = begin(tmp_path / "team")
    made, _ = add(place, wish(tmp_path, text="six\n", start="2.14-cu11"))
    again = Workspace(place.start, {})
    assert made.start.row.tensorflow == "2.14.1" and len(again.matrix.cells) == 2
    assert again.is_locked(made.start)


@pytest.mark.parametrize(
    ("more", "kind", "why"),
    [
        ({"text": "pandas>=3\n"}, ConflictError, "cannot be installed beside"),
        ({"text": "-e .\n"}, UsageError, "editable"),
        ({"name": "../x"}, UsageError, "cannot be called"),
        ({"name": "latest"}, UsageError, "reads like"),
        ({"extras": ("cuda",)}, UsageError, "no extra 'cuda'"),
        ({"start": "9.9"}, UsageError, "no cell is called"),
        ({"start": "2.15-cu12-py3.13"}, UsageError, "refused|no cell"),
        ({"exclude_newer": "yesterday"}, MatrixError, "a time in UTC"),
        ({"files": ()}, UsageError, "asks for nothing"),
        ({"apt": ("x;y",)}, MatrixError, "Debian package name"),
    ],
)
def test_what_cannot_be_added_changes_nothing(
    tmp_path: Path, more: dict[str, Any], kind: type[UsageError], why: str
) -> None:
    place = begin(tmp_path / "team")
    before = seen(tmp_path / "team")
    with pytest.raises(kind, match=why) as error:
        add(place, wish(tmp_path, **more))
    assert seen(tmp_path / "team") == before
    assert "/tfenv-new-" not in error.value.message, "it is the team's file that has to change"


def test_one_of_that_name_is_replaced_only_when_asked(tmp_path: Path) -> None:
    place = begin(tmp_path / "team")
    add(place, wish(tmp_path))
    with pytest.raises(UsageError, match="there is an environment vision"):
        add(place, wish(tmp_path, text="six\n"))
    made, locked = add(place, wish(tmp_path, text="pytz\n", replace=True))
    assert made.asked == ("pytz",) and [wheel.name for wheel in locked.wheels] == ["pytz"]


def test_an_environment_is_not_extended(tmp_path: Path) -> None:
    place = begin(tmp_path / "team")
    add(place, wish(tmp_path))
    with pytest.raises(UsageError, match="environment itself"):
        add(place, wish(tmp_path, name="other", start="vision"))


def test_comments_of_people_stay(tmp_path: Path) -> None:
    place = begin(tmp_path / "team")
    path = tmp_path / "team/matrix.yaml"
    path.write_text(path.read_text().replace("rows:\n", "# our rows, ask Ada\nrows:\n"))
    add(place, wish(tmp_path))
    assert "# our rows, ask Ada" in path.read_text()


# An installed wheel.


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout, unpacked; what it depends on is this environment's."""
    dist, lib = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("lib")
    uv = Path(sys.executable).with_name("uv")
    build = ["build", "--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([uv, *build, "--out-dir", dist, ROOT], check=True, capture_output=True, text=True)
    (wheel,) = dist.glob("*.whl")
    shutil.unpack_archive(wheel, lib, "zip")
    return lib


def test_an_installed_tfenv_starts_and_keeps_a_repository(installed: Path, tmp_path: Path) -> None:
    def tfenv(*arguments: str) -> str:
        code = "import tfenv, sys; from tfenv.cli import main; assert 'lib' in tfenv.__file__; main()"
        env = {
            "PYTHONPATH": str(installed),
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TFENV_CACHE": str(tmp_path / "cache"),
        }
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    tfenv("init", "team", "--from", "2.15-cu12")
    shutil.move(tmp_path / "team" / "matrix.yaml", tmp_path / "matrix.yaml")
    shutil.move(tmp_path / "team" / "images", tmp_path / "images")
    # What is known of the cell's digest has come along.
    assert tfenv("list").startswith((f"{CELL}  verified (", f"{CELL}  locked "))
    assert "1 current" in tfenv("render", "--check")
    assert "unchanged" in tfenv("lock", "--all", "--check")
    assert "tensorflow==2.15.1 --hash=sha256:" in tfenv("export", CELL, "--format", "pip")
