"""The checks that run on every change: in the right order, ending with a failure where one failed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
WORKFLOW = ROOT / ".github/workflows/ci.yml"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone in which every `make TARGET` prints TARGET, and fails if it is $FAILS."""
    folder = tmp_path / "clone"
    (folder / ".ci").mkdir(parents=True)
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
    stop = folder / "scripts/setup"
    stop.write_text('#!/bin/sh\necho "setup $*"\n')
    make = folder / "bin/make"
    make.parent.mkdir()
    make.write_text(
        '#!/bin/sh\necho "made $1"\n'
        '[ "$1" != image ] || [ -z "$STARTS" ] || echo 7 8 > "$TFENV_RUN/dockerd.pid"\n'
        '[ "$1" != "$FAILS" ]\n'
    )
    for script in (stop, make):
        script.chmod(0o755)
    (folder / "run").mkdir()
    return folder


def ci(clone: Path, *, fails: str = "", starts: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{clone / 'bin'}:{os.environ['PATH']}",
        "TFENV_RUN": str(clone / "run"),
        "FAILS": fails,
        "STARTS": starts,
    }
    return subprocess.run([clone / ".ci/run"], cwd="/", env=environment, capture_output=True, text=True)


def test_builds_lints_and_tests_in_this_order(clone: Path) -> None:
    done = ci(clone)
    assert done.returncode == 0
    assert re.findall("made (.*)", done.stdout) == ["image", "lint", "rebuild", "test"]
    assert re.findall(r"^(\w+) +\d+ s$", done.stdout, re.MULTILINE) == [
        "image",
        "lint",
        "rebuild",
        "test",
        "all",
    ]


@pytest.mark.parametrize(
    ("fails", "made"),
    [
        ("image", ["image"]),
        ("lint", ["image", "lint"]),
        ("rebuild", ["image", "lint", "rebuild"]),
        ("test", ["image", "lint", "rebuild", "test"]),
    ],
)
def test_one_failure_ends_it_with_a_failure(clone: Path, fails: str, made: list[str]) -> None:
    done = ci(clone, fails=fails)
    assert done.returncode != 0
    assert re.findall("made (.*)", done.stdout) == made
    assert f"{fails} " in done.stdout and "FAILED" in done.stdout


@pytest.mark.parametrize("fails", ["", "lint"])
def test_stops_the_engine_that_it_started(clone: Path, fails: str) -> None:
    assert "setup --stop" in ci(clone, fails=fails, starts="yes").stdout


def test_leaves_an_engine_that_ran_before(clone: Path) -> None:
    (clone / "run/dockerd.pid").write_text("5 6\n")
    assert "setup --stop" not in ci(clone).stdout


def test_actions_are_pinned_by_commit_and_say_which_version_that_is() -> None:
    uses = re.findall(r"uses: (.*)", WORKFLOW.read_text())
    assert uses
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", use) for use in uses)


def test_jobs_may_read_only_keep_no_token_and_end() -> None:
    workflow = YAML(typ="safe").load(WORKFLOW)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert 0 < job["timeout-minutes"] <= 60
        assert job["steps"][0]["with"] == {"persist-credentials": False}


def test_every_supported_python_is_tested() -> None:
    workflow = YAML(typ="safe").load(WORKFLOW)
    assert workflow["jobs"]["unit"]["strategy"]["matrix"]["python"] == ["3.10", "3.11", "3.12", "3.13"]
    assert 'requires-python = ">=3.10"' in (ROOT / "pyproject.toml").read_text()


def test_scripts_name_no_mirror_and_no_index() -> None:
    files = [ROOT / "Makefile", ROOT / ".ci/run", WORKFLOW, *(ROOT / "scripts").rglob("*")]
    text = "\n".join(file.read_text() for file in files if file.is_file())
    assert not re.search(r"https?://|\bdebian\.org|ubuntu\.com|pypi\.org", text)
