"""Which cells a CI run builds: filters, changes, parts, and the matrix that GitHub gets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfenv import cli, fanout, workspace
from tfenv.engine import Completed
from tfenv.errors import UsageError
from tfenv.fanout import Wanted, changed, changed_paths, github_matrix, parse_part, part_of, select
from tfenv.model import Base, Cell, CudaSet, Matrix, Row

ROOT = Path(__file__).resolve().parent.parent


def cell(tensorflow: str = "2.15.1", python: str = "3.11", base: str = "debian12") -> Cell:
    row = Row(
        tensorflow=tensorflow,
        pythons=("3.9", "3.11"),
        bases=("debian11", "debian12"),
        default_base="debian12",
        default_python="3.11",
        exclude_newer="2024-03-20T00:00:00Z",
        requirements=(f"tensorflow=={tensorflow}",),
    )
    return Cell(
        row=row,
        python=python,
        base=Base(name=base, kind="debian", suite="x"),
        cuda_set=CudaSet(cuda="12.2", cudnn="8.9", epoch=1),
        cuda_from="wheels",
    )


A, B, C = cell(), cell("2.15.1", "3.9", "debian11"), cell("2.9.3", "3.9", "debian11")
CELLS = (A, B, C)


def chosen(**wanted: Any) -> tuple[Cell, ...]:
    return select(CELLS, Wanted(**wanted), lambda c: True)


# Filters


@pytest.mark.parametrize(
    ("wanted", "cells"),
    [
        ({}, CELLS),
        ({"bases": ("debian12",)}, (A,)),
        ({"bases": ("debian11", "debian12")}, CELLS),
        ({"pythons": ("3.9",)}, (B, C)),
        ({"releases": ("2.15",)}, (A, B)),
        ({"releases": ("2.15.1",)}, (A, B)),
        ({"releases": ("2.9", "2.15"), "pythons": ("3.9",)}, (B, C)),
        ({"releases": ("2.15",), "pythons": ("3.9",), "bases": ("debian12",)}, ()),
    ],
)
def test_what_is_wanted(wanted: Any, cells: tuple[Cell, ...]) -> None:
    assert chosen(**wanted) == cells


def test_only_locked_ones_where_that_is_asked_for() -> None:
    assert select(CELLS, Wanted(locked=True), lambda c: c == A) == (A,)
    assert select(CELLS, Wanted(), lambda c: c == A) == CELLS


@pytest.mark.parametrize(
    "wanted",
    [{"bases": ("debian99",)}, {"pythons": ("3.1",)}, {"releases": ("2.1",)}, {"releases": ("2.150",)}],
)
def test_a_typing_error_is_not_nothing_to_do(wanted: Any) -> None:
    with pytest.raises(UsageError, match="no cell has --"):
        chosen(**wanted)


# Changes


@pytest.mark.parametrize(
    ("paths", "cells"),
    [
        ([], ()),
        (["README.md", "matrix.yaml", "docs/matrix.html", "builder/tfenv/outdated/look.py"], ()),
        ([f"images/{A.name}/lock.json"], (A,)),
        ([f"images/{A.name}/Dockerfile", f"images/{C.name}/digest.json"], (A, C)),
        ([f"images/{A.name}/reports/x/report.md"], ()),
        (["images/gone-cell/lock.json"], ()),
        (["images/README.md"], ()),
        ([f"x/images/{A.name}/lock.json"], ()),
        ([f"images/{A.name}-more/lock.json"], ()),
        (["README.md", "verifier/tfenv_verify/main.py"], CELLS),
        (["builder/tfenv/build.py"], CELLS),
        (["builder/tfenv/build.pyx"], ()),
        (["builder/tfenv/facts/libraries.json"], CELLS),
        (["builder/tfenv/facts/eol.json"], ()),
    ],
)
def test_which_cells_a_change_concerns(paths: list[str], cells: tuple[Cell, ...]) -> None:
    assert changed(CELLS, paths) == cells


def test_what_concerns_every_cell_exists_here_and_says_why() -> None:
    for path, why in fanout.SHARED.items():
        assert why
        assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file(), path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a matrix in its folder `team`, one commit on `main`, and one more since."""
    folder = tmp_path / "repo"
    (folder / "team/images/a").mkdir(parents=True)
    run = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x"]

    def git(*arguments: str) -> None:
        subprocess.run([*run, *arguments], check=True, capture_output=True)

    git("init", "-b", "main")
    (folder / "team/images/a/lock.json").write_text("1")
    (folder / "outside").write_text("1")
    (folder / ".gitignore").write_text("ignored\n")
    git("add", ".")
    git("commit", "-m", "one")
    git("checkout", "-b", "work")
    (folder / "team/images/a/lock.json").write_text("2")
    (folder / "outside").write_text("2")
    git("commit", "-am", "two")
    return folder


def test_changes_since_a_branch_committed_or_not(repository: Path) -> None:
    team = repository / "team"
    assert changed_paths(team, "main") == ("images/a/lock.json",)
    assert changed_paths(team, "HEAD") == ()
    (team / "images/b c").mkdir()
    (team / "images/b c/lock.json").write_text("new")
    (team / "ignored").write_text("x")
    (team / "images/a/lock.json").unlink()
    assert changed_paths(team, "main") == ("images/a/lock.json", "images/b c/lock.json")


@pytest.mark.parametrize("ref", ["nope", "", "--output=/tmp/x", "0" * 40])
def test_a_commit_that_git_does_not_know(repository: Path, ref: str) -> None:
    with pytest.raises(UsageError, match="git cannot tell"):
        changed_paths(repository, ref)


def test_where_there_is_no_git_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        changed_paths(tmp_path, "main", lambda argv: Completed(127, "", "no git"))
    assert "no git" in raised.value.message and "fetch" in raised.value.remedy


# Parts, and GitHub's matrix


@given(st.integers(1, 300), st.integers(1, 9))
def test_all_parts_are_all_cells_each_once(count: int, parts: int) -> None:
    cells = [cell(f"2.{i}.0") for i in range(count)]
    made = [part_of(cells, part, parts) for part in range(1, parts + 1)]
    assert sorted(c.name for part in made for c in part) == sorted(c.name for c in cells)
    assert max(map(len, made)) - min(map(len, made)) <= 1


@pytest.mark.parametrize("text", ["1/1", "2/7", "7/7"])
def test_a_part(text: str) -> None:
    assert "/".join(map(str, parse_part(text))) == text


@pytest.mark.parametrize("text", ["", "0/2", "3/2", "1", "1/0", "-1/2", "a/b", "1/2/3", "1/99999"])
def test_what_is_no_part(text: str) -> None:
    with pytest.raises(UsageError, match="is no part"):
        parse_part(text)


def test_the_matrix_of_a_job() -> None:
    assert github_matrix([A], "ubuntu-24.04") == {
        "include": [
            {
                "cell": A.name,
                "tensorflow": "2.15.1",
                "python": "3.11",
                "base": "debian12",
                "runner": "ubuntu-24.04",
            }
        ]
    }
    assert github_matrix([], "x") == {"include": []}


def test_as_many_jobs_as_github_makes_and_no_more() -> None:
    cells = [cell(f"2.{i}.0") for i in range(fanout.LIMIT + 1)]
    assert len(github_matrix(cells[:-1], "x")["include"]) == fanout.LIMIT
    with pytest.raises(UsageError) as raised:
        github_matrix(cells, "x")
    assert "--part 1/2" in raised.value.remedy and str(fanout.LIMIT) in raised.value.message


# The command


@pytest.fixture
def tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """`tfenv list` in a folder whose matrix has three cells, none of them locked."""
    (tmp_path / "matrix.yaml").write_text("")
    (tmp_path / "images" / A.name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    rows = tuple({c.row.tensorflow: c.row for c in CELLS}.values())
    made = Matrix(repository="tfenv", cells=CELLS, refused=(("x", "why"),), bases=(), rows=rows)
    monkeypatch.setattr(workspace.Workspace, "matrix", made)

    def run(*arguments: str) -> tuple[int, str, str]:
        return (cli.run(("list", *arguments)), *capsys.readouterr())

    return run


def test_names_are_one_a_line(tell: Any) -> None:
    assert tell("--format", "names") == (0, "".join(f"{c.name}\n" for c in CELLS), "")
    assert tell("--format", "names", "--locked") == (0, "", "")


def test_github_gets_one_line_of_json(tell: Any) -> None:
    code, out, err = tell("--format", "github", "--runner", "big", "--python", "3.9", "--base", "debian11")
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert [job["cell"] for job in json.loads(out)["include"]] == [B.name, C.name]
    assert {job["runner"] for job in json.loads(out)["include"]} == {"big"}


def test_parts(tell: Any) -> None:
    assert tell("--format", "names", "--part", "2/3")[1] == f"{B.name}\n"
    assert tell("--format", "names", "--part", "4/3")[0] == 2


def test_json_by_either_name(tell: Any) -> None:
    assert tell("--json") == tell("--format", "json")
    assert [told["cell"] for told in json.loads(tell("--json", "--tensorflow", "2.9")[1])] == [C.name]
    assert tell("--json", "--format", "names")[0] == 2
    assert tell("--refused", "--format", "github")[0] == 2


def test_text_is_the_default(tell: Any) -> None:
    code, out, err = tell("--tensorflow", "2.9")
    assert code == 0 and out.startswith(f"{C.name}  not locked  ")
    assert (code, out) == tell("--tensorflow", "2.9", "--format", "text")[:2]
    assert err == "1 refused; why: tfenv list --refused\n"


def test_changed_since(tell: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[Path, str]] = []

    def paths(folder: Path, ref: str) -> tuple[str, ...]:
        asked.append((folder, ref))
        return (f"images/{A.name}/lock.json",)

    monkeypatch.setattr(fanout, "changed_paths", paths)
    assert tell("--format", "names", "--changed-since", "origin/main")[1] == f"{A.name}\n"
    assert asked == [(tmp_path, "origin/main")]


def test_a_base_without_a_digest_is_not_locked(tell: Any) -> None:
    from test_outdated import image_lock, lock
    from tfenv.lock import write_lock

    for made in (lock(A), image_lock(B, "")):
        write_lock(made, Path("images"))
    assert tell("--format", "names", "--locked")[1] == f"{A.name}\n"
    assert [line.split("  ")[1] for line in tell()[1].splitlines()] == [
        "locked",
        f"base not locked (type: tfenv lock {B.name} --upgrade base)",
        "not locked",
    ]
    assert [told["locked"] for told in json.loads(tell("--json")[1])] == [True, False, False]
