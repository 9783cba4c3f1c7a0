"""What a bisection has started does not outlive it, whatever ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tfenv.bisect.guard import when_killed

RUN = """
import os, sys
from pathlib import Path
from tfenv.bisect.command import run_here
run_here(sys.argv[2:], env=dict(os.environ), folder=Path("."), log=Path(sys.argv[1]), timeout=None)
"""


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def eventually(done: object) -> None:
    for _ in range(600):
        if callable(done) and done():
            return
        time.sleep(0.05)
    pytest.fail("it never came to that")


def test_a_killed_bisection_takes_its_command_and_what_that_has_started_along(tmp_path: Path) -> None:
    line = "sleep 600 & echo $! > pids; echo $$ >> pids; mv pids told; wait"
    command = [sys.executable, "-c", RUN, str(tmp_path / "log"), "sh", "-c", line]
    process = subprocess.Popen(command, cwd=tmp_path)
    try:
        eventually((tmp_path / "told").exists)
        pids = [int(word) for word in (tmp_path / "told").read_text().split()]
        assert len(pids) == 2 and not any(map(gone, pids))
    finally:
        process.kill()
        process.wait()
    eventually(lambda: all(map(gone, pids)))


def test_nothing_happens_where_we_are_not_killed(tmp_path: Path) -> None:
    with when_killed(["touch", str(tmp_path / "done")]):
        pass
    with pytest.raises(KeyboardInterrupt), when_killed(["touch", str(tmp_path / "done")]):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_any_command_runs_once_we_are_gone(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from tfenv.bisect.guard import when_killed\n"
        "with when_killed(['touch', sys.argv[1]]):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a b")], check=False)
    assert ended.returncode == -signal.SIGKILL
    eventually((tmp_path / "a b").exists)
    assert [path.name for path in tmp_path.iterdir()] == ["a b"]
