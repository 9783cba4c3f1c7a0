"""The files that travel with the package are found in a checkout and in a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import small
from tfenv import render, resources

ROOT = Path(__file__).resolve().parent.parent


def test_in_a_checkout_they_are_the_checkouts() -> None:
    assert resources.templates_dir() == ROOT / "templates"
    assert resources.verifier_dir() == ROOT / "verifier"
    assert (resources.facts_dir() / "tensorflow.json").is_file()
    assert resources.checkout_matrix() == ROOT / "matrix.yaml"


def test_beside_an_installed_package_they_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "lib" / "tfenv")
    (tmp_path / "lib" / "tfenv" / "_data" / "templates").mkdir(parents=True)
    assert resources.templates_dir() == tmp_path / "lib" / "tfenv" / "_data" / "templates"
    assert resources.facts_dir() == tmp_path / "lib" / "tfenv" / "facts"
    (tmp_path / "matrix.yaml").write_text("")  # somebody's, above the installed package
    assert resources.checkout_matrix() is None


def test_a_checkout_may_lack_a_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "builder" / "tfenv")
    assert resources.checkout_matrix() is None


def _done(argv: list[str | Path], folder: Path, env: dict[str, str] | None = None) -> str:
    whole = {**os.environ, **(env or {})}
    done = subprocess.run(argv, cwd=folder, env=whole, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    # Without the build back end in the environment uv fetches it.
    alone = ["--no-build-isolation"] if find_spec("hatchling") else []
    uv = Path(sys.executable).with_name("uv")
    _done(
        [uv, "build", "--quiet", "--wheel", *alone, "--python", sys.executable, "--out-dir", folder, ROOT],
        ROOT,
    )
    (found,) = folder.glob("*.whl")
    return found


def test_a_wheel_carries_what_a_team_needs_and_no_more(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for name in ("templates", "verifier"):
        files = (
            path for path in (ROOT / name).rglob("*") if path.is_file() and "__pycache__" not in path.parts
        )
        assert {f"tfenv/_data/{path.relative_to(ROOT).as_posix()}" for path in files} <= names
    assert {"tfenv/facts/tensorflow.json", "tfenv/matrix.schema.json", "tfenv/commands/up.py"} <= names
    foreign = {name for name in names if not name.startswith(("tfenv/", "tfenv-"))}
    assert not foreign
    assert not {name for name in names if "__pycache__" in name}


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel installed into a folder of its own; what it depends on is this environment's."""
    folder = tmp_path_factory.mktemp("installed")
    uv = Path(sys.executable).with_name("uv")
    options = ["--quiet", "--offline", "--no-deps", "--no-config", "--python", sys.executable]
    _done([uv, "pip", "install", *options, "--target", folder, wheel], folder)
    return folder


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A team's folder: matrix.yaml and images/, nothing else."""
    return small.workspace(tmp_path / "team").start


def tfenv(installed: Path, team: Path, *arguments: str) -> str:
    script = installed / "bin" / "tfenv"
    return _done([sys.executable, script, *arguments], team, {"PYTHONPATH": str(installed)})


def test_the_installed_one_is_what_runs(installed: Path, team: Path) -> None:
    code = "import tfenv.resources as r; print(r.__file__); print(r.templates_dir()); print(r.verifier_dir())"
    lines = _done([sys.executable, "-c", code], team, {"PYTHONPATH": str(installed)}).splitlines()
    assert all(line.startswith(str(installed)) for line in lines)
    assert all(Path(line).exists() for line in lines)


def test_list_and_render_work_from_an_installed_wheel(installed: Path, team: Path) -> None:
    assert small.CELL in tfenv(installed, team, "list")
    assert "current" in tfenv(installed, team, "render", "--check")


def test_the_wheels_templates_are_the_checkouts_version(installed: Path, team: Path) -> None:
    code = "from tfenv.render import template_version as v; print(v('debian'), v('nvidia'))"
    told = _done([sys.executable, "-c", code], team, {"PYTHONPATH": str(installed)}).strip()
    assert told.split() == [render.template_version("debian"), render.template_version("nvidia")]


def test_the_suite_can_be_packed_from_an_installed_wheel(installed: Path, team: Path) -> None:
    code = "from tfenv.resources import verifier_dir as v; print(sorted(p.name for p in v().iterdir()))"
    told = _done([sys.executable, "-c", code], team, {"PYTHONPATH": str(installed)})
    for path in (ROOT / "verifier").iterdir():
        if path.name != "__pycache__":
            assert repr(path.name) in told
