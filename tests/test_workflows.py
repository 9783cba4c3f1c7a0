"""The workflows on GitHub: pinned, without rights, without templates in scripts, and calling what exists."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML
from tfenv.cli import COMMANDS
from tfenv.fanout import LIMIT, github_matrix, part_of
from tfenv.matrix import load_matrix

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github/workflows"
FILES = sorted(FOLDER.glob("*.yml"))
#: Commits that these actions' own repositories call by these versions.
KNOWN = {
    "actions/checkout": ("3d3c42e5aac5ba805825da76410c181273ba90b1", "v7.0.1"),
    "actions/upload-artifact": ("bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "v7.0.0"),
}


def load(file: Path) -> Any:
    return YAML(typ="safe").load(file)


def jobs() -> Iterator[tuple[str, Any]]:
    for file in FILES:
        for name, job in load(file)["jobs"].items():
            yield f"{file.stem}.{name}", job


JOBS = dict(jobs())
SCRIPTS = [
    pytest.param(step["run"], id=f"{name}.{number}")
    for name, job in JOBS.items()
    for number, step in enumerate(job["steps"])
    if "run" in step
]


def test_there_are_workflows() -> None:
    assert [file.stem for file in FILES] == ["audit", "cells", "ci"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_action_is_pinned_by_a_commit_that_is_known(file: Path) -> None:
    uses = re.findall(r"uses: (.*)", file.read_text())
    assert uses
    for use in uses:
        match = re.fullmatch(r"([\w-]+/[\w-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", use)
        assert match and KNOWN[match[1]] == (match[2], match[3])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_may_be_written_and_runs_do_not_pile_up(file: Path) -> None:
    workflow = load(file)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    assert workflow["defaults"]["run"]["shell"] == "bash"
    assert "pull_request_target" not in file.read_text() and "secrets." not in file.read_text()


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_jobs_have_a_name_an_end_and_no_token(job: Any) -> None:
    assert job["name"] and "permissions" not in job
    assert 0 < job["timeout-minutes"] <= 60
    checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts and all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_template_is_expanded_in_a_script(script: str) -> None:
    assert "${{" not in script


def test_every_file_is_found_by_the_name_that_workflows_use() -> None:
    text = "\n".join(file.read_text() for file in FILES)
    for name in set(re.findall(r"run: (?:sudo )?(\.?[\w-]+/[\w-]+)", text)):
        if not name.startswith(".venv"):
            assert os.access(ROOT / name, os.X_OK), name
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= set(targets)


def commands() -> list[list[str]]:
    text = "\n".join(step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step)
    found = re.findall(r"\.venv/bin/tfenv ([^\n>|)]*)", text)
    return [[word for word in shlex.split(line) if not word.startswith("$")] for line in found]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_and_option_exists(words: list[str]) -> None:
    if words == ["--version"]:
        return
    assert words[0] in COMMANDS
    command = importlib.import_module(f"tfenv.commands.{words[0]}").command
    rest = words[1:]
    while isinstance(command, click.Group):
        command = command.commands[rest.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= known


# The choice of cells


def script_of(name: str) -> str:
    (script,) = [step["run"] for step in JOBS["cells.list"]["steps"] if step.get("id") == name]
    assert isinstance(script, str)
    return script


@pytest.fixture
def choose(tmp_path: Path) -> Any:
    """Run the step that chooses cells, with a `tfenv` that notes what it is asked and names $CELLS cells."""
    tfenv = tmp_path / ".venv/bin/tfenv"
    tfenv.parent.mkdir(parents=True)
    tfenv.write_text(
        '#!/usr/bin/env bash\nprintf "%s\\n" "$*" >> asked\n'
        'if [ "$3" = github ]; then echo \'{"include": []}\'; else seq "$CELLS"; fi\n'
    )
    tfenv.chmod(0o755)

    def run(event: str, cells: int = 3, **variables: str) -> tuple[list[str], dict[str, str]]:
        output = tmp_path / "output"
        output.write_text("")
        env = {
            "PATH": os.environ["PATH"],
            "GITHUB_EVENT_NAME": event,
            "GITHUB_OUTPUT": str(output),
            "RUNNER_TEMP": str(tmp_path),
            "CELLS": str(cells),
            **dict.fromkeys(("BASE", "PYTHON", "TENSORFLOW", "PART"), ""),
            **variables,
        }
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script_of("cells")]
        subprocess.run(shell, cwd=tmp_path, env=env, check=True, capture_output=True)
        asked = (tmp_path / "asked").read_text().splitlines()
        (tmp_path / "asked").unlink()
        return asked, dict(line.split("=", 1) for line in output.read_text().splitlines())

    return run


def test_a_pull_request_builds_what_it_changes(choose: Any) -> None:
    asked, output = choose("pull_request", GITHUB_BASE_REF="main")
    assert asked == [
        "list --format names --locked --changed-since origin/main",
        "list --format github --runner ubuntu-24.04 --locked --changed-since origin/main",
    ]
    assert output == {"matrix": '{"include": []}', "count": "3"}


def test_a_night_builds_a_seventh(choose: Any) -> None:
    asked, _ = choose("schedule")
    assert re.fullmatch(r"list --format names --locked --part [1-7]/7", asked[0])


def test_by_hand_whatever_is_wanted(choose: Any) -> None:
    asked, _ = choose("workflow_dispatch", BASE="debian12", TENSORFLOW="2.15; id", PART="1/2")
    assert asked[0] == "list --format names --locked --base debian12 --tensorflow 2.15; id --part 1/2"


def test_no_cell_is_no_job(choose: Any) -> None:
    assert choose("pull_request", cells=0, GITHUB_BASE_REF="main")[1]["count"] == "0"
    assert JOBS["cells.cell"]["if"] == "needs.list.outputs.count != '0'"


def test_the_cells_of_a_night_fit_into_a_matrix() -> None:
    cells = load_matrix(ROOT / "matrix.yaml").cells
    nights = [github_matrix(part_of(cells, night, 7), "x")["include"] for night in range(1, 8)]
    assert sum(map(len, nights)) == len(cells)
    assert max(map(len, nights)) <= LIMIT
    assert max(len(json.dumps(night)) for night in nights) < 1_000_000  # a job's outputs hold 1 MB


def test_a_job_reads_only_what_the_matrix_has() -> None:
    job = JOBS["cells.cell"]
    (entry,) = github_matrix(load_matrix(ROOT / "matrix.yaml").cells[:1], "x")["include"]
    used = set(re.findall(r"matrix\.(\w+)", json.dumps({**job, "strategy": None})))
    assert used == {"cell", "runner"} and used <= set(entry)


# The checkers themselves


def checker(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found, f"{name} is in the development group of pyproject.toml: make env"
    return found


GOOD = """\
name: x
on: push
permissions: {contents: read}
concurrency: {group: x, cancel-in-progress: true}
jobs:
  a:
    name: a
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    steps:
      - run: echo hello
"""
# What must not pass: text replaced, by what, and the checker that finds it.
BAD = [
    ("echo hello", "echo ${{ github.event.pull_request.title }}", "actionlint"),
    ("echo hello", "echo ${{ github.event.pull_request.title }}", "zizmor"),
    ("run: echo hello", "uses: actions/checkout@v4", "zizmor"),
    ("{contents: read}", "write-all", "zizmor"),
    ("echo hello", "echo ${{ steps.nothing.outputs.x }}", "actionlint"),
    ("runs-on", "run-on", "actionlint"),
]


def check(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    lint = (ROOT / "Makefile").read_text()
    (options,) = re.findall(rf"\$\(BIN\)/{name} ?(.*)", lint)
    arguments = options.replace("$(BIN)", str(Path(sys.executable).parent)).split()
    return subprocess.run([checker(name), *arguments], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("name", ["actionlint", "zizmor"])
def test_checkers_have_nothing_to_say_of_ours(name: str) -> None:
    done = check(name, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".github/workflows").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["actionlint", "zizmor"])
def test_checkers_let_good_ones_pass(project: Path, name: str) -> None:
    (project / ".github/workflows/x.yml").write_text(GOOD)
    done = check(name, project)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("old", "new", "name"), BAD)
def test_checkers_find_what_is_bad(project: Path, old: str, new: str, name: str) -> None:
    assert old in GOOD
    (project / ".github/workflows/x.yml").write_text(GOOD.replace(old, new))
    assert check(name, project).returncode != 0
