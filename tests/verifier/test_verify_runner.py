"""Children that behave, and children that do not."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tfenv_verify.noise import NOISE, without_noise
from tfenv_verify.parts import answer_of
from tfenv_verify.runner import Ended, judge, run_child, signal_name

VERIFIER = Path(__file__).resolve().parents[2] / "verifier"
PRELUDE = f"""
import os, signal, subprocess, sys, time
sys.path.insert(0, {str(VERIFIER)!r})
from tfenv_verify import child
fd = int(sys.argv[sys.argv.index("--result-fd") + 1])
def answer(function, limit=30.0):
    sys.exit(child.answer(fd, lambda: child.run_check(function, None, limit)))
"""


def ended(code: str, timeout: float = 60.0) -> Ended:
    return run_child([sys.executable, "-B", "-c", PRELUDE + code], timeout, forward=lambda chunk: None)


def run(code: str, timeout: float = 60.0) -> dict[str, Any]:
    return judge("fake", ended(code, timeout), timeout)


def message(event: dict[str, Any]) -> str:
    assert event["status"] == "fail"
    return str(event["findings"][0]["message"])


def test_a_check_that_passes() -> None:
    event = run(
        "def check(context, report):\n"
        "    print('chatter on stdout')\n"
        "    report.facts['answer'] = 42\n"
        "    report.info('fine')\n"
        "answer(check)"
    )
    assert event["status"] == "pass"
    assert event["facts"] == {"answer": 42}
    assert event["findings"][0]["message"] == "fine"


def test_a_check_that_finds_an_error() -> None:
    event = run("answer(lambda context, report: report.error('bad', 'seen', 'do'))")
    assert message(event) == "bad"


def test_a_check_that_cannot_be_made() -> None:
    event = run(
        "from tfenv_verify.protocol import NotRunError\n"
        "def check(context, report): raise NotRunError('no pip')\n"
        "answer(check)"
    )
    assert (event["status"], event["reason"]) == ("not-run", "no pip")


def test_an_error_found_before_giving_up_is_not_forgotten() -> None:
    event = run(
        "from tfenv_verify.protocol import NotRunError\n"
        "def check(context, report):\n"
        "    report.error('bad')\n"
        "    raise NotRunError('no pip')\n"
        "answer(check)"
    )
    assert message(event) == "bad"


def test_an_exception_is_a_fail_with_its_traceback() -> None:
    event = run("def check(context, report): raise ValueError('odd')\nanswer(check)")
    assert message(event) == "ValueError: odd"
    assert "Traceback" in event["findings"][0]["evidence"]


def test_a_hang_is_killed_and_named_with_its_limit() -> None:
    event = run("print('before the hang', flush=True)\ntime.sleep(600)", timeout=1.0)
    assert "had not finished after" in message(event)
    assert "limit is 1 s" in message(event)
    assert "before the hang" in event["findings"][0]["evidence"]


def test_a_hang_inside_a_check_shows_where_it_was() -> None:
    event = run("answer(lambda context, report: time.sleep(600), limit=2.0)", timeout=3.0)
    assert "Timeout" in event["findings"][0]["evidence"]


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_crash_names_the_signal(name: str) -> None:
    event = run(f"os.kill(os.getpid(), signal.{name})")
    assert f"killed by {name}" in message(event)


def test_out_of_memory_is_suggested_for_sigkill() -> None:
    event = run("os.kill(os.getpid(), signal.SIGKILL)")
    assert "memory" in event["findings"][0]["remedy"]


def test_a_crash_after_the_result_is_a_fail() -> None:
    event = run(
        'os.write(fd, b\'{"status": "pass", "findings": [], "facts": {}}\')\n'
        "os.kill(os.getpid(), signal.SIGSEGV)"
    )
    assert "SIGSEGV" in message(event)


@pytest.mark.parametrize(
    "payload",
    [
        b"garbage",
        b"[]",
        b'{"status": "great"}',
        b'{"status": "pass"}',
        b'{"status": "pass", "findings": {}, "facts": {}}',
        b"\xff\xfe",
    ],
)
def test_garbage_is_not_a_result(payload: bytes) -> None:
    assert "not a result" in message(run(f"os.write(fd, {payload!r})"))


def test_no_result_is_a_fail_whatever_the_exit_code() -> None:
    assert "exit code 0 and without a result" in message(run("pass"))
    assert "exit code 7 and without a result" in message(run("sys.exit(7)"))


def test_a_result_with_a_bad_exit_code_is_a_fail() -> None:
    event = run('os.write(fd, b\'{"status": "pass", "findings": [], "facts": {}}\')\nsys.exit(5)')
    assert "ended with code 5" in message(event)


def test_a_fake_result_on_stdout_is_only_output() -> None:
    event = run('print(\'{"event": "check", "status": "pass"}\')')
    assert "without a result" in message(event)


def test_huge_output_neither_blocks_nor_floods() -> None:
    forwarded = bytearray()
    code = (
        "for _ in range(64): sys.stdout.write('x' * (1 << 20) + '\\n')\n"
        "answer(lambda context, report: print('the end'))"
    )
    result = run_child([sys.executable, "-B", "-c", PRELUDE + code], 60.0, forward=forwarded.extend)
    assert judge("fake", result, 60.0)["status"] == "pass"
    assert len(forwarded) < 2 << 20
    assert b"left out" in forwarded
    assert result.tail.endswith("the end")


NUMA = (
    "2026-11-30 20:42:10.2: I external/local_xla/xla/stream_executor/cuda/cuda_executor.cc:901] successful "
    "NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node, so zero"
)


def test_known_noise_leaves_room_for_what_tells_something() -> None:
    code = f"print('the cause')\nfor _ in range(99): print({NUMA!r})\nprint('no NUMA node 1', flush=True)"
    found = run_child([sys.executable, "-c", code], 60.0, forward=lambda chunk: None)
    assert found.tail == "the cause\nno NUMA node 1"


def test_what_counts_as_noise() -> None:
    noise = [
        NUMA,
        "could not open file to read NUMA node: /sys/bus/pci/devices/0000:01:00.0/numa_node",
        "Your kernel may have been built without NUMA support.",
        "Could not identify NUMA node of platform GPU ID 0, defaulting to 0.  Your kernel may not have been",
    ]
    kept = ["NUMA node 0 is out of memory", "could not open file to read weights", "", "Segmentation fault"]
    assert without_noise([*noise, *kept]) == kept
    from tfenv.report import noise as of_the_host

    assert of_the_host.NOISE.pattern == NOISE.pattern, "one rule in both"


def test_a_huge_result_is_a_fail() -> None:
    event = run("with os.fdopen(fd, 'wb') as f:\n    for _ in range(10): f.write(b' ' * (1 << 20))")
    assert "more than" in message(event)


def test_the_whole_group_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    run(
        "p = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(note)!r}, 'w').write(str(p.pid))\n"
        "time.sleep(600)",
        timeout=3.0,
    )
    assert gone(int(note.read_text()))


def test_what_a_passing_check_leaves_behind_is_killed_too(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    event = run(
        "def check(context, report):\n"
        "    p = subprocess.Popen(['sleep', '600'])\n"
        f"    open({str(note)!r}, 'w').write(str(p.pid))\n"
        "answer(check)"
    )
    assert event["status"] == "pass"
    assert gone(int(note.read_text()))


def gone(pid: int) -> bool:
    """Whether a process has ended; as a zombie it may wait for whoever inherited it."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_the_environment_can_be_emptied() -> None:
    result = run_child(
        [sys.executable, "-c", PRELUDE + "print('left:', sorted(set(os.environ) - {'LC_CTYPE'}))"],
        60.0,
        env={},
        forward=lambda chunk: None,
    )
    assert "left: []" in result.tail


def test_no_file_descriptor_is_left_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        ended("pass")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_signals_without_a_name() -> None:
    assert signal_name(11) == "SIGSEGV"
    assert signal_name(1000) == "signal 1000"


def test_a_child_is_stopped_when_there_is_a_reason() -> None:
    asked: list[int] = []

    def stop() -> str:
        asked.append(1)
        return "another has failed" if len(asked) > 1 else ""

    def run(code: str, timeout: float = 60.0) -> Ended:
        command = [sys.executable, "-B", "-c", PRELUDE + code]
        return run_child(command, timeout, forward=lambda chunk: None, stop=stop)

    ended = run("import time; time.sleep(600)")
    assert (ended.stopped, ended.timed_out, ended.returncode) == ("another has failed", False, -9)
    assert answer_of(ended)["failed"].endswith(" s: another has failed")
    asked.clear()
    assert run("pass").stopped == ""
    asked.clear()
    hung = run_child(
        [sys.executable, "-c", "import time; time.sleep(600)"], 0.6, forward=lambda _: None, stop=lambda: ""
    )
    assert hung.timed_out and hung.stopped == ""
