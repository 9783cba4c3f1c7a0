"""The profiler's files, TensorBoard as a process, and parts of checks in processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tfenv_verify import parts
from tfenv_verify.checks import profiler, tensorboard
from tfenv_verify.context import Context
from tfenv_verify.declared import Declared
from tfenv_verify.protocol import NotRunError, Report
from tfenv_verify.runner import Ended

NONE = Declared()


def field(number: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def plane(name: bytes, events: int) -> bytes:
    line = b"\x08\x01" + b"".join(field(4, b"\x08\x07") for _ in range(events))
    return field(1, b"\x08\x05" + field(2, name) + field(3, line))


def test_events_are_counted_by_plane(tmp_path: Path) -> None:
    data = plane(b"/device:GPU:0", 3) + plane(b"/host:CPU", 1) + field(2, b"CUPTI broke") + b"\x25abcd"
    (tmp_path / "a.xplane.pb").write_bytes(data)
    found = profiler.read([str(tmp_path / "a.xplane.pb")])
    assert found == {"planes": {"/device:GPU:0": 3, "/host:CPU": 1}, "errors": ["CUPTI broke"]}


@pytest.mark.parametrize("data", [b"\x0a\x05ab", b"\x0b", b"\xff", b"\x0a"])
def test_a_file_that_is_no_message_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        list(profiler.fields(data))


def profiled(planes: dict[str, int], lines: list[str], declared: Declared = NONE) -> list[str]:
    report = Report()
    profiler.judge(planes, lines, declared, report)
    return [finding["severity"] for finding in report.findings]


def test_a_profile_needs_kernels_of_the_gpu() -> None:
    assert profiled({"/device:GPU:0": 3, "/host:CPU": 9}, []) == []
    assert profiled({"/device:GPU:0": 0, "/host:CPU": 9}, []) == ["error"]
    assert profiled({"/host:CPU": 9}, ["CUPTI error: CUPTI could not be loaded"]) == ["error"]
    assert profiled({}, []) == ["error"]


def test_what_is_declared_or_not_permitted_is_a_warning() -> None:
    assert profiled({"/host:CPU": 9}, [], Declared(absent=("libcupti.so.11.2",))) == ["warning"]
    assert profiled({"/host:CPU": 9}, ["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"]) == ["warning"]


def board(**more: Any) -> list[tuple[str, str]]:
    found = {"address": "http://127.0.0.1:6006/", "runs": ["tfenv"], "trouble": "", "code": 0, "output": ""}
    found.update(more)
    report = Report()
    tensorboard.judge(found, report)
    return [(finding["severity"], finding["message"]) for finding in report.findings]


def test_tensorboard_that_answers_and_ends_passes() -> None:
    assert board() == []
    assert board(code=-15) == []


def test_tensorboard_that_does_not_is_said() -> None:
    assert "does not start (it ended with 1)" in board(address="", code=1, output="No module")[0][1]
    assert "does not answer" in board(runs=None)[0][1]
    assert "does not find the run" in board(runs=[])[0][1]
    assert board(code=None)[0][0] == "warning"


def test_no_tensorboard_is_not_run_unless_it_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard, "installed", lambda sites: [])
    with pytest.raises(NotRunError, match="is not in this image"):
        tensorboard.check(Context(), Report())
    report = Report()
    tensorboard.check(Context(Declared(packages=("tensorboard",))), report)
    assert report.status == "fail"


SERVER = """
import http.server, json, signal, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(["tfenv"] if self.path == "/data/runs" else []).encode())
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print("TensorBoard 9.9 at http://127.0.0.1:%d/ (Press CTRL+C to quit)" % server.server_port, flush=True)
server.serve_forever()
"""


def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> dict[str, Any]:
    (tmp_path / "tensorboard").mkdir()
    (tmp_path / "tensorboard/__init__.py").touch()
    (tmp_path / "tensorboard/main.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr(tensorboard, "suite_command", lambda: [sys.executable])
    return tensorboard.serve(str(tmp_path))


def test_a_server_is_started_asked_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = served(tmp_path, monkeypatch, SERVER)
    assert (found["runs"], found["code"]) == (["tfenv"], -15)
    assert found["address"].startswith("http://127.0.0.1:")


def test_a_server_that_ends_at_once_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = served(tmp_path, monkeypatch, "import pkg_resources_that_is_not_there")
    assert (found["address"], found["code"]) == ("", 1)
    assert "pkg_resources" in found["output"]


def test_what_becomes_of_a_part() -> None:
    assert parts.answer_of(Ended(0, False, 1.0, b'{"a": 1}', "")) == {"a": 1}
    hung = parts.answer_of(Ended(-9, True, 45.2, b"", "last words"))
    assert hung == {
        "failed": "had not ended after 45 s and was killed",
        "hung": True,
        "tail": "last words",
    }
    assert parts.answer_of(Ended(-11, False, 1.0, b'{"a": 1}', ""))["failed"] == "was killed by SIGSEGV"
    for result in (b"", b"[]", b"garbage", b'{"a": 1}'):
        told = parts.answer_of(Ended(1, False, 1.0, result, "Traceback\nValueError: odd\n"))
        assert told["failed"] == "ended with code 1: ValueError: odd"


def test_a_part_runs_in_a_real_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tensorflow.py").write_text("raise ImportError('no TensorFlow here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = parts.run_part(Context(), "memory", {"part": "growth"}, 60.0)
    assert "no TensorFlow here" in found["failed"]
    (tmp_path / "tensorflow.py").write_text("import time\ntime.sleep(600)")
    assert parts.run_part(Context(), "memory", {"part": "growth"}, 2.0)["hung"]
