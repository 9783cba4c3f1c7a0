"""The command on this machine, whatever it is: it changes nothing, and agrees with its recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tfenv.commands.doctor import command


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command, list(arguments), catch_exceptions=False, standalone_mode=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which a change would be seen."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("TFENV_CACHE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_nothing_is_changed(home: Path) -> None:
    done = run("--offline", "--json")
    assert done.return_value == json.loads(done.stdout)["code"]
    assert list(home.rglob("*")) == []


def test_a_recording_of_this_machine_gives_its_verdict(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    seen = run("--offline", "--json", "--record", str(path))
    again = run("--json", "--replay", str(path))
    assert again.return_value == seen.return_value
    first, second = json.loads(seen.stdout), json.loads(again.stdout)
    assert [one["id"] for one in first["found"]] == [one["id"] for one in second["found"]]
    assert first["rows"] == second["rows"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--deep",),
        ("--in", "2.15", "--try"),
        ("--in", "2.15", "2.15"),
        ("--replay", "FILE", "--record", "OTHER"),
        ("--replay", "FILE", "--try"),
        ("no-such-cell", "--replay", "FILE"),
    ],
)
def test_usage(arguments: tuple[str, ...], tmp_path: Path) -> None:
    from tfenv.doctor.evidence import Evidence, dump
    from tfenv.errors import UsageError

    path = tmp_path / "host.json"
    path.write_text(dump(Evidence()))
    named = [str(path) if a == "FILE" else str(tmp_path / "other") if a == "OTHER" else a for a in arguments]
    with pytest.raises(UsageError):
        run(*named)


def test_a_file_that_is_no_recording(tmp_path: Path) -> None:
    from tfenv.errors import UsageError

    path = tmp_path / "host.json"
    path.write_bytes(b"\xff\xfe\x00 no JSON")
    with pytest.raises(UsageError, match="cannot be replayed"):
        run("--replay", str(path))


def test_the_packed_part_is_written(tmp_path: Path) -> None:
    path = tmp_path / "doctor.pyz"
    assert run("--pack", str(path)).return_value == 0
    assert path.read_bytes()[:2] == b"PK"


@pytest.mark.image
def test_from_within_the_built_image() -> None:
    done = run("--in", "2.15-cu12", "--json")
    data = json.loads(done.stdout)
    assert done.return_value == data["code"]
    assert data["facts"]["packages"]["tensorflow"] == "2.15.1"


@pytest.mark.engine
def test_an_image_that_is_not_here() -> None:
    from tfenv.errors import UsageError

    with pytest.raises(UsageError, match="there is no image"):
        run("--in", "no-such-image:1.0")
