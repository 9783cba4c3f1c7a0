"""The Makefile lists what it can do, and `make image` says the truth about a machine without a GPU."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tfenv.errors import EXIT_UNVERIFIED
from tfenv.verify import NO_GPU

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()  # type: ignore[index]


def make(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=cwd, capture_output=True, text=True)


def test_help_is_the_default_and_lists_every_target_once() -> None:
    done = make("-s")
    assert done.returncode == 0
    assert re.findall(r"^  make (\S+)", done.stdout, re.MULTILINE) == TARGETS
    assert done.stdout == make("-s", "help").stdout


def test_every_target_says_what_it_does() -> None:
    assert all(re.search(rf"^{target}:.* ## \w", MAKEFILE, re.MULTILINE) for target in TARGETS)


def test_the_cell_can_be_named() -> None:
    assert "scripts/image '2.15-cu12'" in make("-n", "image").stdout
    assert "scripts/rebuild 'other'" in make("-n", "rebuild", "CELL=other").stdout
    assert "scripts/image 'other'" in make("-n", "image", "CELL=other").stdout


def test_an_unknown_target_fails() -> None:
    assert make("imagine").returncode == 2


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with spaces, set up already, in which `tfenv up` says $TOLD and ends with $CODE."""
    folder = tmp_path / "my own checkout"
    (folder / ".venv/bin").mkdir(parents=True)
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in ("Makefile", "uv.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "scripts/setup").write_text("#!/bin/sh\n")
    tfenv = folder / ".venv/bin/tfenv"
    tfenv.write_text('#!/bin/sh\necho "$@" >&2; [ -z "$TOLD" ] || echo "$TOLD"; exit "$CODE"\n')
    tfenv.chmod(0o755)
    (folder / ".venv/bin/python").symlink_to(sys.executable)
    (folder / ".venv/bin/ready").touch()
    return folder


def up(checkout: Path, code: int, told: object = "") -> subprocess.CompletedProcess[str]:
    text = told if isinstance(told, str) else json.dumps(told)
    return subprocess.run(
        ["make", "-s", "image"],
        cwd=checkout,
        env={**os.environ, "CODE": str(code), "TOLD": text},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def told(verdict: str, reason: str = "") -> dict[str, object]:
    """What `tfenv up --json` prints."""
    return {
        "cell": "2.15.1-cell",
        "manifest": "sha256:abc",
        "likeness": "identical",
        "tags": ["tfenv:2.15.1-cell", "tfenv:2.15"],
        "verdict": verdict,
        "reason": reason,
        "reports": "/store/reports/x",
    }


LINES = [
    "up --json 2.15-cu12",
    "2.15.1-cell",
    "  sha256:abc",
    "  identical",
    "  tfenv:2.15.1-cell",
    "  tfenv:2.15",
    "  reports: /store/reports/x",
]


def test_what_tfenv_says_without_a_gpu_is_what_the_script_reads() -> None:
    assert (NO_GPU, EXIT_UNVERIFIED) == ("no GPU", 3)


def test_without_a_gpu_unverified_is_said_last_and_is_no_failure(checkout: Path) -> None:
    done = up(checkout, 3, told("unverified", "no GPU"))
    assert done.returncode == 0
    assert done.stdout.splitlines() == [*LINES, "unverified: no GPU"]


@pytest.mark.parametrize("reason", ["no check was run", "needs Python 3.7", "no GPU driver", ""])
def test_unverified_for_another_reason_is_a_failure(checkout: Path, reason: str) -> None:
    done = up(checkout, 3, told("unverified", reason))
    assert done.returncode == 2
    assert "unverified: no GPU" not in done.stdout.splitlines()
    assert done.stdout.splitlines()[: len(LINES)] == LINES


@pytest.mark.parametrize("code", [1, 2, 4])
@pytest.mark.parametrize(
    "said", [told("fail"), told("unverified", "no GPU"), {"error": {"message": "x"}}, "", "[]", "Traceback"]
)
def test_any_other_failure_is_a_failure(checkout: Path, code: int, said: object) -> None:
    done = up(checkout, code, said)
    assert done.returncode == 2
    assert "unverified: no GPU" not in done.stdout.splitlines()


@pytest.mark.parametrize(
    "said", [{"error": {"message": "x"}}, "", "no GPU", '"no GPU"', '{"reason": "no GPU"}']
)
def test_unverified_without_a_verdict_is_a_failure(checkout: Path, said: object) -> None:
    assert up(checkout, 3, said).returncode == 2


def test_what_is_no_json_is_shown(checkout: Path) -> None:
    assert "it says something" in up(checkout, 1, "it says something").stdout.splitlines()


def test_verified_is_no_failure(checkout: Path) -> None:
    done = up(checkout, 0, told("pass"))
    assert done.returncode == 0
    assert done.stdout.splitlines() == LINES
