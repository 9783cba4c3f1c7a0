"""What people may type or hand to ``tfenv explain`` by mistake or malice: an answer or a refusal, soon."""

from __future__ import annotations

from pathlib import Path

import pytest
from tfenv.cli import run
from tfenv.compat.pins import exact, pins
from tfenv.errors import UsageError
from tfenv.lint import lint_dockerfile, lint_requirements, read_cells


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--cuda", value) for value in ("12.2rc1", "v12.2", "1!12.2", "12.2+x", "12.", "1" * 5000)),
        *(("--cudnn", value) for value in ("9.0a", "v9.3")),
        *(("--driver", value) for value in ("v535", "535rc1", "--")),
        *(("--python", value) for value in ("3", "v3.11", "3.11rc1")),
        *(("--tf", value) for value in ("2", "v2.18", "2.18+x", "1!2.18")),
    ],
)
def test_what_is_no_version(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [] if option == "--tf" else ["--tf", "2.18"]
    assert run(["explain", *asked, option, value]) == 2
    assert "is no version of" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--requirements", "--dockerfile", "--matrix"])
def test_a_file_that_does_not_end(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a" * ((1 << 20) + 1))
    assert run(["explain", option, str(file)]) == 2
    assert "more than 1048576 bytes" in capsys.readouterr().err


def test_a_file_of_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "requirements.txt"
    file.write_bytes(b"tensorflow==2.15.1 \\\r\n  --hash=sha256:aa\r\nnumpy==2.0\r\n")
    assert run(["explain", "--requirements", str(file)]) == 1
    assert "wants numpy<2" in capsys.readouterr().out
    file.write_text("tensorflow==2.15.1\n", encoding="utf-16")  # of PowerShell's >
    assert run(["explain", "--requirements", str(file)]) == 2
    assert "is no text" in capsys.readouterr().err


def test_a_candidate_of_a_minor_release_is_not_its_last_patch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--tf", "2.18rc1", "--python", "3.11", "--cuda-source", "base"]) == 1
    assert "prerelease-not-allowed" in capsys.readouterr().out


def test_what_one_base_is_refused_for_is_not_said_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["explain", "--tf", "2.22.0rc0", "--pre", "--platform", "linux/amd64"]
    assert run([*asked, "--python", "3.11"]) == 0
    assert "matrix-refused" not in capsys.readouterr().out
    assert run([*asked, "--base", "ubuntu24.04"]) == 1
    assert "matrix-refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "tensorflow==" + "1" * 1_000_000,
        "tensorflow==2.15 " + "--a" * 300_000,
        "Distribution `" + "a==1" * 50_000,
        "a==1 " * 50_000,
        "a" * 10_000 + "\n" + "x" * 1_999,
    ],
)
def test_long_lines_are_read_in_no_time(text: str) -> None:
    query, [finding] = lint_requirements(text)
    assert (query.tensorflow, finding.severity) == ("", "unknown")


def test_pins_of_many_digits_are_none() -> None:
    assert pins(("tensorflow==" + "1" * 5000,)) == {}


@pytest.mark.parametrize(
    ("pinned", "release"), [("2.15", "2.15.0"), ("2", "2.0.0"), ("2.15.1", "2.15.1"), ("2.15.0.post1",) * 2]
)
def test_a_pin_means_what_pip_takes_it_for(pinned: str, release: str) -> None:
    assert exact(pinned) == release
    assert lint_requirements(f"tensorflow=={pinned}")[0].tensorflow == release
    assert lint_dockerfile(f"FROM a:1\nRUN pip install tensorflow=={pinned}")[0].tensorflow == release


_BOMB = (
    "{tensorflow: &a [x,x,x,x,x,x,x,x,x], cuda: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a], "
    "base: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b], cudnn: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c], "
    "driver: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d], platform: [*e,*e,*e,*e,*e,*e,*e,*e,*e]}"
)


@pytest.mark.parametrize(
    "cells",
    [
        f"[{_BOMB}]",
        "[" * 2_000,
        "[{tensorflow: 2.15.1, env: [A]}]",
        "[{tensorflow: 2.15.1, env: A}]",
        "[{tensorflow: 2.15.1, gpus: {a: b}}]",
        "[{tensorflow: 2.15.1, gpus: [[a]]}]",
    ],
    ids=lambda text: text[:40],
)
def test_lists_of_cells_that_cannot_be_read(cells: str) -> None:
    with pytest.raises(UsageError, match="list of cells"):
        read_cells(f"cells: {cells}")


def test_a_cell_that_says_nothing_is_not_said_to_run() -> None:
    [(_, [finding])] = read_cells("cells: [{}]")
    assert finding.severity == "unknown"
    assert read_cells("cells: [{tensorflow: '2.15', env: [A=1, B=], gpu: T4}]")[0][1] == ()
