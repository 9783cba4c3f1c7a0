"""The Makefile lists what it can do, and `make image` says the truth about a machine without a GPU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

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
    assert "scripts/image 'other'" in make("-n", "image", "CELL=other").stdout


def test_an_unknown_target_fails() -> None:
    assert make("imagine").returncode == 2


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with spaces, set up already, in which `tfenv up` ends with $CODE."""
    folder = tmp_path / "my own checkout"
    (folder / ".venv/bin").mkdir(parents=True)
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in ("Makefile", "uv.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "scripts/setup").write_text("#!/bin/sh\n")
    tfenv = folder / ".venv/bin/tfenv"
    tfenv.write_text('#!/bin/sh\necho "$@"; echo unverified >&2; exit "$CODE"\n')
    tfenv.chmod(0o755)
    (folder / ".venv/bin/ready").touch()
    return folder


def up(checkout: Path, code: int, *, gpu: bool) -> subprocess.CompletedProcess[str]:
    probe = "() { true; }" if gpu else "() { false; }"  # stands in for looking for /dev/nvidia0
    environment = {**os.environ, "CODE": str(code), "BASH_FUNC_compgen%%": probe}
    return subprocess.run(
        ["make", "-s", "image"],
        cwd=checkout,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.skipif(Path("/dev/dxg").exists(), reason="Windows' subsystem for Linux: this machine has a GPU")
def test_without_a_gpu_unverified_is_said_last_and_is_no_failure(checkout: Path) -> None:
    done = up(checkout, 3, gpu=False)
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["up 2.15-cu12", "unverified", "unverified: no GPU"]


def test_with_a_gpu_unverified_is_a_failure(checkout: Path) -> None:
    done = up(checkout, 3, gpu=True)
    assert done.returncode == 2
    assert "no GPU" not in done.stdout


@pytest.mark.parametrize("code", [1, 2, 4])
def test_any_other_failure_is_a_failure_with_or_without_a_gpu(checkout: Path, code: int) -> None:
    for gpu in (True, False):
        done = up(checkout, code, gpu=gpu)
        assert done.returncode == 2
        assert "no GPU" not in done.stdout


def test_verified_is_no_failure(checkout: Path) -> None:
    done = up(checkout, 0, gpu=True)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "unverified"  # what this stand-in prints; nothing is added
