"""A process of this host, listened to and ended as a container is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tfenv.processes import RunningProcess


def runs(mark: str) -> bool:
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return any(mark in line and "ps -eo" not in line for line in left.splitlines())


def started(*argv: str) -> tuple[subprocess.Popen[bytes], RunningProcess]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(argv, stdout=pipe, stderr=pipe, start_new_session=True)
    return process, RunningProcess(process)


def test_output_of_both_kinds_comes_to_the_end() -> None:
    process, running = started("sh", "-c", "echo out; echo err >&2; exit 3")
    with process:
        pieces = list(running.output())
        assert (
            b"".join(out for out, _ in pieces) == b"out\n" and b"".join(err for _, err in pieces) == b"err\n"
        )
        assert running.wait().status == 3


def test_a_killed_one_says_so_as_the_shell_does() -> None:
    process, running = started("sleep", "600")
    with process:
        running.kill()
        assert list(running.output()) == [] and running.wait().status == 137
        running.kill()


def test_what_is_left_behind_is_not_waited_for_and_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfenv.processes._DRAIN_SECONDS", 0.1)
    monkeypatch.setattr("tfenv.processes._LOOK_SECONDS", 0.1)
    mark = str(800 + os.getpid() / 1e6)
    process, running = started("sh", "-c", f"sleep {mark} & echo said; exit 5")
    with process:
        assert b"".join(out for out, _ in running.output()) == b"said\n" and runs(mark)
        assert running.wait().status == 5 == running.wait().status
        assert not runs(mark)
        running.kill()


def test_what_has_left_the_session_and_prints_for_ever_does_not_hang_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tfenv.processes._DRAIN_SECONDS", 0.1)
    script = (
        "import os, sys, time\nif os.fork():\n  print(os.getpid(), flush=True); sys.exit(0)\nos.setsid()\n"
    )
    script += "for _ in range(200):\n  print('daemon', flush=True); time.sleep(0.05)\n"
    process, running = started(sys.executable, "-c", script)
    assert process.stdout is not None and process.stderr is not None
    out = b"".join(out for out, _ in running.output())
    assert running.wait().status == 0 and out.count(b"daemon") < 150
    process.stdout.close()
    process.stderr.close()
