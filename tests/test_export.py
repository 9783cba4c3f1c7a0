"""Exports are read by the parsers of the tools that they are for, and hold what the lock holds."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
import teams
from ruamel.yaml import YAML
from tfenv import cli
from tfenv.commands.export import NAMES
from tfenv.export import FORMATS, Subject
from tfenv.lockfile import read_lock
from tfenv.model import Environment
from tfenv.runline import run_argv
from tfenv.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent
REAL = Workspace(ROOT, {})


def subject(name: str = "2.15-cu12", manifest: str = "") -> Subject:
    (cell,) = REAL.cells((name,))
    lock = read_lock(REAL.lock_path(cell))
    return Subject(cell=cell, lock=lock, image=f"tfenv:{cell.name}", manifest=manifest)


def own(tmp_path: Path, text: str = teams.TEXT) -> Subject:
    place = small.workspace(tmp_path, text)
    cell = teams.lock(place)
    return Subject(cell=cell, lock=place.lock(cell), image="tfenv:vision", manifest="")


def read_by_pip(text: str, folder: Path) -> dict[str, dict[str, list[str]]]:
    """Requirement -> hashes, as pip itself reads the file."""
    from pip._internal.network.session import PipSession
    from pip._internal.req import parse_requirements

    file = folder / "requirements.txt"
    file.write_text(text)
    found = {}
    for parsed in parse_requirements(str(file), session=PipSession()):
        found[parsed.requirement] = parsed.options["hashes"] if parsed.options else {}
    return found


def test_the_command_offers_every_format() -> None:
    assert tuple(FORMATS) == NAMES


# pip


def test_pip_reads_every_wheel_with_its_hash(tmp_path: Path) -> None:
    of = subject()
    read = read_by_pip(FORMATS["pip"].make(of), tmp_path)
    assert read == {
        f"{w.name}=={w.version}": {"sha256": [w.sha256]} for w in of.lock.wheels if w.layer != "tool"
    }
    assert any(name.startswith("nvidia-cudnn-cu12==") for name in read)


def test_pips_hashes_are_enforced(tmp_path: Path) -> None:
    from pip._internal.network.session import PipSession
    from pip._internal.req.req_file import RequirementsFileParser, get_line_parser

    (tmp_path / "r.txt").write_text(FORMATS["pip"].make(subject()))
    parser = RequirementsFileParser(PipSession(), get_line_parser(None))
    options = [line.opts for line in parser.parse(str(tmp_path / "r.txt"), constraint=False)]
    assert any(getattr(one, "require_hashes", None) for one in options)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("2.15-cu12", "looks for NVIDIA's libraries in the wheels beside it"),
        ("2.13", "does NOT look for NVIDIA's libraries"),
        ("2.15-ubuntu22.04", "NOT among these wheels"),
    ],
)
@pytest.mark.parametrize("form", ["pip", "conda"])
def test_it_says_how_libraries_are_found(name: str, says: str, form: str) -> None:
    text = FORMATS[form].make(subject(name))
    assert says in text and "LD_LIBRARY_PATH" in text and "xla_gpu_cuda_data_dir" in text


def test_the_lines_for_the_shell_are_for_a_shell(tmp_path: Path) -> None:
    text = FORMATS["pip"].make(subject("2.10"))
    lines = [line[4:] for line in text.splitlines() if line.startswith("#   ")]
    typed = [line for line in lines if line.startswith(("site=", "libs=", "export ", "ln "))]
    assert len(typed) == 7
    site = tmp_path / "site"
    for name in ("cuda_cupti/lib/libcupti.so.11.8", "cuda_nvrtc/lib/libnvrtc.so.11.2"):
        (site / "nvidia" / name).parent.mkdir(parents=True)
        (site / "nvidia" / name).touch()
    script = "\n".join([f"site={shlex.quote(str(site))}", *typed[1:]])
    done = subprocess.run(
        ["sh", "-euc", f"{script}\necho $LD_LIBRARY_PATH"],
        capture_output=True,
        text=True,
        env={"PATH": "/bin:/usr/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{site}/nvidia/cuda_cupti/lib:{site}/nvidia/cuda_nvrtc/lib"
    assert (site / "nvidia/cuda_cupti/lib/libcupti.so.11.2").resolve().name == "libcupti.so.11.8"


def test_what_has_no_wheel_is_built_from_its_source(tmp_path: Path) -> None:
    text = FORMATS["pip"].make(subject("2.5-debian11"))
    assert "--no-binary termcolor" in text and "setuptools" in text
    assert any(name.startswith("termcolor==") for name in read_by_pip(text, tmp_path))


def test_an_environment_is_exported_with_its_row(tmp_path: Path) -> None:
    of = own(tmp_path / "team")
    read = read_by_pip(FORMATS["pip"].make(of), tmp_path)
    assert {"pandas==2.2.0", "tensorflow==2.15.1"} <= set(read) and not any("uv==" in name for name in read)
    assert "libgl1" in FORMATS["pip"].make(of)


# conda


def test_conda_reads_python_and_the_same_wheels(tmp_path: Path) -> None:
    of = subject()
    data = YAML(typ="safe").load(FORMATS["conda"].make(of))
    assert list(data) == ["name", "channels", "dependencies"]
    python, pip, inner = data["dependencies"]
    assert (python, pip) == ("python=3.11", "pip")
    lines = "\n".join(inner["pip"])
    assert read_by_pip(lines, tmp_path) == read_by_pip(FORMATS["pip"].make(of), tmp_path)


# containers


def test_compose_sets_up_what_run_does() -> None:
    data = YAML(typ="safe").load(FORMATS["compose"].make(subject()))
    service = data["services"]["tf"]
    line = run_argv("i", gpus="all", workdir=Path("/w"))
    assert f"--shm-size={service['shm_size']}" in line and f"stack={service['ulimits']['stack']}" in line
    assert "memlock=-1" in line and service["ulimits"]["memlock"] == -1
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert service["volumes"] == ["./:/workspace", "tfenv-cache:/home/tfenv/.cache"]
    assert service["pull_policy"] == "never" and "ports" not in service
    assert set(data["volumes"]) == {"tfenv-cache"}


def test_the_devcontainer_sets_up_what_run_does() -> None:
    data = json.loads(FORMATS["devcontainer"].make(subject()))
    assert data["image"] == f"tfenv:{small.CELL}" and data["hostRequirements"] == {"gpu": "optional"}
    line = run_argv("i")
    assert set(data["runArgs"]) <= set(line)
    assert data["workspaceFolder"] == "/workspace" and "target=/workspace" in data["workspaceMount"]
    settings: Any = data["customizations"]["vscode"]["settings"]
    assert settings["python.defaultInterpreterPath"] == "/opt/tfenv/venv/bin/python"


def test_jupyter_is_served_on_this_machine_alone(tmp_path: Path) -> None:
    of = own(tmp_path, teams.TEXT)
    assert isinstance(of.cell, Environment)
    of = replace(of, cell=replace(of.cell, extras=("jupyter",)))
    service = YAML(typ="safe").load(FORMATS["compose"].make(of))["services"]["tf"]
    assert service["ports"] == ["127.0.0.1:8888:8888"] and service["command"][:2] == ["jupyter", "lab"]
    assert json.loads(FORMATS["devcontainer"].make(of))["forwardPorts"] == [8888]


def test_apptainer_starts_from_the_engines_image() -> None:
    text = FORMATS["apptainer"].make(subject(manifest=f"sha256:{'a' * 64}"))
    header = [line for line in text.splitlines() if line and not line.startswith(("#", " ", "%"))]
    assert header == ["Bootstrap: docker-daemon", f"From: tfenv:{small.CELL}"]
    sections = [line for line in text.splitlines() if line.startswith("%")]
    assert sections == ["%environment", "%runscript", "%labels", "%help"]
    assert "export CUDA_CACHE_PATH=" in text and "a" * 64 in text and "oci-archive" in text
    script = text.partition("%runscript")[2].partition("%labels")[0]
    done = subprocess.run(["sh", "-euc", script, "sh", "echo", "a b"], capture_output=True, text=True)
    assert done.stdout == "a b\n"


@pytest.mark.parametrize("form", NAMES)
def test_the_same_lock_gives_the_same_file_and_nothing_of_this_machine(form: str) -> None:
    first, second = FORMATS[form].make(subject()), FORMATS[form].make(subject())
    assert first == second and first.endswith("\n") and not first.endswith("\n\n")
    assert str(Path.home()) not in first and "http" not in first


# The command.


def test_it_goes_to_stdout_to_a_file_or_into_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = small.place(tmp_path, monkeypatch, teams.TEXT)
    teams.lock(place.workspace)
    assert cli.run(["export", "vision", "--format", "pip"]) == 0
    text = capsys.readouterr().out
    assert "pandas==2.2.0 --hash=sha256:" in text
    assert cli.run(["export", "vision", "--format", "pip", "--output", str(tmp_path / "r.txt")]) == 0
    assert (tmp_path / "r.txt").read_text() == text and capsys.readouterr().out.strip() == str(
        tmp_path / "r.txt"
    )
    assert cli.run(["export", "vision", "--format", "compose", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "compose"


def test_what_cannot_be_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small.place(tmp_path, monkeypatch, teams.TEXT)
    assert cli.run(["export", "vision", "--format", "pip"]) == 2
    assert "tfenv lock vision" in capsys.readouterr().err
    assert cli.run(["export", "nobody", "--format", "pip"]) == 2
    assert cli.run(["export", "vision", "--format", "flatpak"]) == 2
    assert cli.run(["export", "vision"]) == 2


def test_that_cuda_is_not_among_the_wheels_is_said_aloud(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("TFENV_MATRIX", raising=False)
    assert cli.run(["export", "2.15-ubuntu22.04", "--format", "pip"]) == 0
    assert "CUDA from its base image" in capsys.readouterr().err
