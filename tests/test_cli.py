"""The command line: what is loaded, what is printed where, and which code says what."""

from __future__ import annotations

import errno
import importlib
import json
import os
import pkgutil
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import small
import tfenv
from matrices import changed
from small import Place
from tfenv import cli, commands, workspace
from tfenv.commands._common import each, of_system, unforeseen
from tfenv.console import Console
from tfenv.errors import NotReadyError, TfenvError
from tfenv.fetch import MissingInputs

TFENV = Path(sys.executable).with_name("tfenv")
NEEDS_CELL = {"lock", "build", "verify", "up", "run", "stress", "bench"}
NEEDS_MATRIX = {*NEEDS_CELL, "list", "render", "gc"}
WRITES = {"lock", "render", "build", "up", "gc"}


def command(name: str) -> click.Command:
    found = cli.tfenv.get_command(click.Context(cli.tfenv), name)
    assert found is not None
    return found


# What other commands cannot do without.
ARGUMENTS = {
    "bisect": ["2.15-cu12", "--good", "2024-03-01", "--bad", "today", "--", "true"],
    "new": ["vision", "--from", "2.15-cu12", "--apt", "libgl1"],
    "export": ["2.15-cu12", "--format", "pip"],
    "archive": ["2.15-cu12", "--to", "kept"],
    "rebuild": ["kept"],
    "diff": ["2.15-cu12", "2.15"],
    "doctor": ["2.15-cu12", "--offline"],
    "licenses": ["2.15-cu12"],
    "rollback": ["2.15-cu12"],
    "sbom": ["2.15-cu12"],
}


def line(name: str) -> list[str]:
    """The shortest right command line."""
    return [name, *ARGUMENTS.get(name, ["2.15-cu12"] if name in NEEDS_CELL else [])]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# What is loaded.


def loaded(*arguments: str) -> set[str]:
    """The slow modules that a command line imports."""
    code = (
        "import sys; from tfenv.cli import run; assert run(sys.argv[1:]) == 0;"
        "print(*sys.modules, file=sys.stderr)"
    )
    argv = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout
    return set(done.stderr.split()) & {"docker", "jinja2", "pydantic", "rich", "requests", "ruamel.yaml"}


def test_help_loads_nothing_that_is_slow() -> None:
    assert loaded("--help") == set()
    assert loaded("--version") == set()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_no_commands_help_loads_anything_that_is_slow(name: str) -> None:
    assert loaded(name, "-h") == set()


# Every command.


def test_every_command_has_one_line_and_a_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(commands.__path__)}
    assert {name for name in modules if not name.startswith("_")} == set(cli.COMMANDS)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_command_has_json_and_help_and_says_one_thing_of_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {option for parameter in command(name).params for option in parameter.opts}
    assert "--json" in options
    assert command(name).name == name
    for flag in ("-h", "--help"):
        assert cli.run([name, flag]) == 0
        out, err = capsys.readouterr()
        assert out.startswith(f"Usage: tfenv {name}")
        assert err == ""


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    options = (parameter for parameter in command(name).params if isinstance(parameter, click.Option))
    assert [option.name for option in options if not option.help] == []


def test_help_names_every_command_and_the_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in cli.COMMANDS)
    assert "3 could not be verified" in out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert tfenv.__version__ in capsys.readouterr().out


# Wrong lines.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["biuld"], "Did you mean build"),
        (["verfy"], "Did you mean verify?"),
        (["qqqq"], "No such command 'qqqq'."),
        (["build", "--nocache"], "--no-cache"),
        (["run"], "CELL"),
        (["run", "--nonsense", "2.15", "true"], "No such option"),
        (["run", "-x", "2.15", "true"], "No such option"),
        (["up"], "CELL"),
        (["lock", "x", "--upgrade", "some"], "wheels"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_a_wrong_line_is_usage_and_says_what_is_near(
    here: Place, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert cli.run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err


def test_nothing_typed_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) in (0, 2)
    assert "build" in "".join(capsys.readouterr())


@pytest.mark.parametrize("name", sorted(NEEDS_CELL))
def test_a_wrong_cell_gets_the_nearest(here: Place, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert cli.run([name, "2.15-cu13"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "'2.15-cu13'" in err and "2.15-cu12" in err


@pytest.mark.parametrize("name", ["lock", "build", "verify"])
def test_no_cell_at_all_is_told(here: Place, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert cli.run([name]) == 2
    assert "--all" in capsys.readouterr().err


# Without a usable matrix.


@pytest.mark.parametrize("name", sorted(NEEDS_MATRIX))
def test_outside_of_any_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.delenv("TFENV_MATRIX", raising=False)
    monkeypatch.setenv("TFENV_CACHE", str(tmp_path / "store"))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    if name not in WRITES:
        monkeypatch.setattr("tfenv.resources.checkout_matrix", lambda: None)
    assert cli.run(line(name)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "no matrix.yaml" in err and "remedy: " in err
    assert snapshot(tmp_path) == {}


BAD = {
    "an unknown key": (changed("    cudnn:", "    cudn:"), "cudn"),
    "a wrong type": (changed('cuda: "12.2"', "cuda: 12.2"), "12.2"),
    "a duplicate row": (
        changed("rows:\n", "rows:\n" + small.matrices.TEXT.partition("rows:\n")[2]),
        "2.15.1",
    ),
    "an instruction": (changed("suite: bookworm", '"suite": "bookworm\\nRUN id"'), "suite"),
    "no YAML": (changed("rows:", "rows: ["), ""),
}


@pytest.mark.parametrize("name", sorted(NEEDS_MATRIX))
@pytest.mark.parametrize("what", BAD)
def test_a_bad_matrix_is_told_with_line_and_column_and_nothing_is_written(
    here: Place, capsys: pytest.CaptureFixture[str], what: str, name: str
) -> None:
    text, words = BAD[what]
    (here.workspace.start / "matrix.yaml").write_text(text)
    before = snapshot(here.root)
    assert cli.run(line(name)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "matrix.yaml:" in err
    place = err.partition("matrix.yaml:")[2].split(":")
    assert place[0].isdigit() and place[1].split()[0].strip(",").isdigit()
    assert words in err
    after = snapshot(here.root)
    after.pop(str(here.store.root / "lock"), None)
    assert after == {path: data for path, data in before.items() if path != str(here.store.root / "lock")}


def test_a_matrix_that_is_named_but_not_there(
    here: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TFENV_MATRIX", str(here.root / "none.yaml"))
    assert cli.run(["list"]) == 2
    assert "none.yaml" in capsys.readouterr().err


# Errors.


def _all_errors() -> Iterator[type[TfenvError]]:
    for module in pkgutil.iter_modules(tfenv.__path__):
        importlib.import_module(f"tfenv.{module.name}")
    left = [TfenvError]
    while left:
        kind = left.pop()
        yield kind
        left += kind.__subclasses__()


@pytest.mark.parametrize("kind", list(_all_errors()), ids=lambda kind: kind.__name__)
def test_every_error_is_printed_with_its_remedy_and_its_code(
    here: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: type[TfenvError]
) -> None:
    error = (
        kind("cell", wheels=["a.whl"])
        if issubclass(kind, MissingInputs)
        else kind("is wrong", remedy="type x\nor y")
    )

    def fail() -> None:
        raise error

    monkeypatch.setattr("tfenv.workspace.here", fail)
    assert cli.run(["list"]) == kind.exit_code != 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {error.message}\n")
    for part in error.remedy.splitlines():
        assert part in err.partition("remedy: ")[2]


def test_an_error_of_the_system_is_one_line(
    here: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error", "/dev/broken")

    monkeypatch.setattr("tfenv.workspace.here", fail)
    assert cli.run(["list"]) == 4
    first, second = capsys.readouterr().err.splitlines()
    assert first == "error: Input/output error: /dev/broken"
    assert second.startswith("remedy: ")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "tfenv gc"),
        (errno.EDQUOT, "quota"),
        (errno.EACCES, "ls -ld"),
        (errno.EROFS, "TFENV_CACHE"),
        (errno.EMFILE, "ulimit"),
        (errno.EIO, "type the command again"),
        (None, "type the command again"),
    ],
)
def test_an_error_of_the_system_has_a_remedy(number: int | None, words: str) -> None:
    error = of_system(OSError(number, "it says so", "/file") if number else OSError("timed out"))
    assert isinstance(error, NotReadyError)
    assert error.message == ("it says so: /file" if number else "timed out")
    assert words in error.remedy


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_kill_and_a_closed_terminal_end_it_like_ctrl_c(
    here: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    before, cleaned = signal.getsignal(number), []

    def stop() -> None:
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)  # one more does not break off the cleaning up
            cleaned.append(True)

    monkeypatch.setattr("tfenv.workspace.here", stop)
    assert cli.run(["list"]) == 128 + number
    assert cleaned == [True]
    assert "interrupted" in capsys.readouterr().err
    assert signal.getsignal(number) is before


def test_nohup_is_respected(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = workspace.here

    def here_after_a_hangup() -> workspace.Workspace:
        os.kill(os.getpid(), signal.SIGHUP)
        return real()

    monkeypatch.setattr("tfenv.workspace.here", here_after_a_hangup)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert cli.run(["list"]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_it_runs_in_a_thread_too(here: Place) -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(cli.run(["list"])))
    thread.start()
    thread.join()
    assert codes == [0]


def test_a_terminal_that_is_gone_is_no_trouble_while_ending(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BUILD", "hangs")
    master, slave = pty.openpty()
    process = subprocess.Popen([TFENV, "build", "2.15-cu12"], stdin=slave, stdout=slave, stderr=slave)
    client = here.docker.hanging()
    os.close(slave)
    os.close(master)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 128 + signal.SIGHUP
    assert here.leftovers() == []
    with pytest.raises(ProcessLookupError):
        os.kill(client, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_another_signal_does_not_break_off_the_cleaning_up(number: int) -> None:
    cleaned = False
    with pytest.raises(KeyboardInterrupt), cli.stoppable() as came:
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        finally:
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), number)
                time.sleep(0.01)
            cleaned = True
    assert cleaned and came[0] == number and len(came) == 7


def test_who_waits_for_it_too_long_may_break_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_CLEANING_SECONDS", -1)
    with pytest.raises(KeyboardInterrupt), cli.stoppable():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            pytest.fail("the cleaning up went on")


def test_ctrl_c_says_that_one_can_go_on(
    here: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tfenv.workspace.here", stop)
    assert cli.run(["list"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert "interrupted" in err and "again" in err


# stdout and stderr.


@pytest.mark.parametrize("name", ["list", "render", "schema", "gc"])
def test_json_is_one_document_on_stdout(here: Place, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert cli.run([name, "--json"]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("\n") and len(out.splitlines()) == 1
    assert json.loads(out)
    assert err == ""


def test_with_json_an_error_of_a_cell_is_data_too(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (here.workspace.folder(here.cell) / "Dockerfile").unlink()
    assert cli.run(["build", "--json", "--all"]) == 1
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["cell"] == here.cell.name
    assert told["error"]["exit_code"] == 1
    assert told["error"]["message"] in err
    assert told["error"]["remedy"]


@pytest.mark.parametrize("name", cli.COMMANDS)
@pytest.mark.parametrize("error", [NotReadyError("is wrong", remedy="type x"), OSError(5, "is wrong")])
def test_with_json_every_commands_error_is_data_too(
    here: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    error: Exception,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("tfenv.workspace.here", fail)
    monkeypatch.setattr("tfenv.schema.json_schema", fail)
    monkeypatch.setattr("tfenv.facts.releases", fail)
    monkeypatch.setattr("tfenv.snapshot.choosing.parse", fail)
    monkeypatch.setattr("tfenv.team.start.catalogue", fail)
    assert cli.run([name, "--json", *line(name)[1:]]) == 4
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert set(told) == {"error"} and set(told["error"]) == {"message", "remedy", "exit_code"}
    assert "is wrong" in told["error"]["message"] and told["error"]["exit_code"] == 4
    assert err.startswith("error: ") and "remedy: " in err
    assert cli.run(line(name)) == 4
    assert capsys.readouterr().out == ""


def test_with_json_a_wrong_line_is_data_too(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["up", "--json"]) == cli.run(["up", "--jsn"]) == 2
    (told,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "CELL" in told["error"]["message"] and told["error"]["exit_code"] == 2


def test_json_of_the_command_in_the_container_is_not_ours(
    here: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_BUILD", "no-engine")
    assert cli.run(["run", "2.15", "python", "--json"]) == 4
    assert capsys.readouterr().out == ""


def test_an_error_of_the_system_in_one_cell_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def action(cell: str) -> int:
        if cell == "b":
            raise OSError(errno.ENOSPC, "No space left on device", "/x")
        done.append(cell)
        return 3

    done: list[str] = []
    assert each("abc", str, action, Console(), as_json=True) == 4
    assert done == ["a", "c"]
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["cell"] == "b" and "No space left" in told["error"]["message"]
    assert "tfenv gc" in told["error"]["remedy"] and "tfenv gc" in err


def test_a_reader_that_goes_away_stops_all_cells() -> None:
    def action(cell: str) -> int:
        done.append(cell)
        raise BrokenPipeError

    done: list[str] = []
    with pytest.raises(BrokenPipeError):
        each("ab", str, action, Console(), as_json=True)
    assert done == ["a"]


def on_terminal(arguments: list[str], env: dict[str, str]) -> tuple[int, bytes]:
    """Run tfenv with stderr on a terminal: (exit code, what is seen there)."""
    master, slave = pty.openpty()
    whole = {**{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CI")}, "TERM": "xterm", **env}
    process = subprocess.Popen([TFENV, *arguments], stdout=subprocess.DEVNULL, stderr=slave, env=whole)
    os.close(slave)
    seen = b""
    try:
        while chunk := os.read(master, 4096):
            seen += chunk
    except OSError:  # the other end is closed
        pass
    os.close(master)
    return process.wait(60), seen


def test_colour_is_for_terminals_that_want_it(here: Place) -> None:
    code, seen = on_terminal(["build", "nothing"], {})
    assert code == 2
    assert b"\x1b[31m" in seen
    assert b"\x1b" not in on_terminal(["build", "nothing"], {"NO_COLOR": "1"})[1]
    assert b"\x1b" not in on_terminal(["build", "nothing"], {"TERM": "dumb"})[1]
    done = subprocess.run([TFENV, "build", "nothing"], capture_output=True, check=False)
    assert b"\x1b" not in done.stderr + done.stdout


@pytest.mark.parametrize("arguments", [["schema"], ["list"], ["list", "--json"], ["--help"]])
def test_a_reader_that_goes_away_is_no_trouble(here: Place, arguments: list[str]) -> None:
    process = subprocess.Popen([TFENV, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) in (0, 1)
    assert err == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("arguments", "code"), [(["doctor", "--pack", "{}"], 0), (["build", "--nothing"], 2)]
)
def test_streams_that_are_closed_are_no_trouble(
    tmp_path: Path, closed: str, arguments: list[str], code: int
) -> None:
    line = [TFENV, *(argument.format(tmp_path / "packed") for argument in arguments)]
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *line], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (code, b"")
    assert (tmp_path / "packed").exists() == (code == 0)


def test_a_full_stdout_is_told_once_also_with_json() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [TFENV, "list", "--json"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode not in (0, 120)
    assert "No space left on device" in done.stderr and "Traceback" not in done.stderr


def test_a_fault_of_our_own_is_told_also_where_no_traceback_can_be_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    told = unforeseen(RuntimeError("boom"))
    assert "RuntimeError: boom" in told.message and "could not be kept: No space" in told.remedy
