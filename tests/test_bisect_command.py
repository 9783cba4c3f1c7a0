"""The user's command: run, watched, ended, and judged as git-bisect does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from tfenv.bisect.command import NotJudgedError, Ran, judge, last_line, run_here

ENV = {"PATH": os.environ["PATH"]}


def run(tmp_path: Path, *command: str, timeout: float | None = None) -> Ran:
    return run_here(command, env=ENV, folder=tmp_path, log=tmp_path / "logs" / "1.txt", timeout=timeout)


@pytest.mark.parametrize(
    ("status", "word"),
    [(0, "good"), (1, "bad"), (2, "bad"), (124, "bad"), (125, "skip")]
    + [(-int(s), "bad") for s in (signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)]
    + [(128 + int(s), "bad") for s in (signal.SIGSEGV, signal.SIGBUS)]
    + [(None, "bad")],
)
def test_the_convention(status: int | None, word: str) -> None:
    found, why = judge(Ran(status=status, seconds=1.0, said="x\nValueError: y\n"), ["it"])
    assert found == word
    assert bool(why) == (word != "good")


@pytest.mark.parametrize(
    "status",
    [126, 127, 255, 200, -int(signal.SIGKILL), -int(signal.SIGTERM), -int(signal.SIGINT), 128 + 9, 128 + 2],
)
def test_what_is_no_answer_stops_the_search(status: int) -> None:
    with pytest.raises(NotJudgedError) as raised:
        judge(Ran(status=status, seconds=1.0, said="said so"), ["it"])
    assert raised.value.remedy


def test_a_real_program(tmp_path: Path) -> None:
    ran = run(tmp_path, "sh", "-c", "echo out; echo err >&2; pwd; exit 3")
    assert ran.status == 3
    assert ran.said == f"out\nerr\n{tmp_path}\n" == (tmp_path / "logs" / "1.txt").read_text()


@pytest.mark.parametrize("name", ["no-such-program", "./no-such-program", "/no/such/program"])
def test_a_missing_program_was_not_found(tmp_path: Path, name: str) -> None:
    ran = run(tmp_path, name)
    assert ran.status == 127
    with pytest.raises(NotJudgedError, match="was not found"):
        judge(ran, [name])


def test_without_a_log_nothing_is_started(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")
    with pytest.raises(FileExistsError):
        run(tmp_path, "touch", str(tmp_path / "ran"))
    assert not (tmp_path / "ran").exists()


def test_a_program_that_may_not_be_run(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    ran = run(tmp_path, "./text")
    assert ran.status == 126
    with pytest.raises(NotJudgedError, match="may not be executed"):
        judge(ran, ["./text"])


def test_a_crash_is_told_by_its_signal(tmp_path: Path) -> None:
    ran = run(tmp_path, "sh", "-c", "kill -SEGV $$")
    assert judge(ran, ["sh"]) == ("bad", "ended by SIGSEGV")


def test_it_ends_in_time_with_all_that_it_started(tmp_path: Path) -> None:
    ran = run(tmp_path, "sh", "-c", "echo $$; sleep 1000 & echo $!; sleep 1000", timeout=0.5)
    assert ran.status is None
    for pid in ran.said.split():
        assert gone(int(pid))
    word, why = judge(ran, ["sh"])
    assert (word, why[:8]) == ("bad", "not done")


def test_what_it_leaves_running_does_not_hold_it_up(tmp_path: Path) -> None:
    ran = run(tmp_path, "sh", "-c", "sleep 1000 & echo $!; exit 0")
    assert ran.status == 0
    assert gone(int(ran.said))


def test_it_is_asked_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "sh", "-c", "read answer || exit 5").status == 5


def test_endless_output_does_not_fill_the_disk(tmp_path: Path) -> None:
    ran = run(tmp_path, sys.executable, "-c", "import os\nfor i in range(200): os.write(1, b'x' * 99999)")
    assert ran.status == 0
    assert (tmp_path / "logs" / "1.txt").stat().st_size < 5_000_000
    assert len(ran.said) <= 1 << 16


def test_output_that_is_no_text(tmp_path: Path) -> None:
    ran = run(tmp_path, sys.executable, "-c", r"import os; os.write(1, b'\xff\x00\x1b[31m bad'); exit(1)")
    word, why = judge(ran, ["it"])
    assert word == "bad"
    assert "\x1b" not in why


def test_when_we_are_told_to_end_so_is_the_command(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from tfenv.bisect.command import run_here
        from tfenv.cli import stoppable
        here = Path(sys.argv[1])
        with stoppable():
            run_here(["sh", "-c", "echo $$ > pid; sleep 1000"], env={"PATH": "/usr/bin:/bin"}, folder=here,
                     log=here / "log", timeout=None)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.DEVNULL)
    pid = tmp_path / "pid"
    while not (pid.is_file() and pid.read_text().strip()):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.wait()
    assert gone(int(pid.read_text()))


def test_the_line_that_says_most() -> None:
    said = "Traceback\n  x\nImportError: numpy.core failed\nsome note after it\n"
    assert last_line(said) == "ImportError: numpy.core failed"
    assert last_line("a\nmodule.sub.SomeError: why\n\n") == "module.sub.SomeError: why"
    assert last_line("plain words\nlast words\n") == "last words"
    assert last_line("") == ""
    noise = "2026-11-30 18:12:21.643279: W tensorflow/x.cc:38] Could not find TensorRT\n"
    assert last_line(f"said so\n{noise}") == "said so"
    assert last_line(noise) == ""


def gone(pid: int) -> bool:
    """Does it run no more, a moment later (a zombie does not run)?"""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False
