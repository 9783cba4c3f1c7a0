from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tfenv.container import Bind, Ended, ProgramMissingError, Spec
from tfenv.errors import UsageError
from tfenv.load import pack, running
from tfenv.load.bare import Bare
from tfenv.load.running import run_load

SPEC = Spec(image="x", gpus=True)
END = {"event": "end", "why": ""}


class Fake:
    """A container that says ``pieces``."""

    def __init__(self, pieces: list[tuple[bytes, bytes]], ended: Ended) -> None:
        self._pieces, self._ended, self.killed = pieces, ended, False

    def output(self) -> Iterator[tuple[bytes, bytes]]:
        yield from self._pieces

    def wait(self) -> Ended:
        return self._ended

    def kill(self) -> None:
        self.killed = True


def start(specs: list[Spec], *answers: Any) -> Any:
    left = list(answers)

    @contextmanager
    def begin(spec: Spec) -> Iterator[Fake]:
        specs.append(spec)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield answer

    return begin


def said(*events: dict[str, Any], status: int = 0) -> Fake:
    text = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    half = len(text) // 2
    return Fake([(text[:half], b"noise"), (text[half:], b"")], Ended(status))


def test_events_are_collected_as_they_come():
    specs: list[Spec] = []
    seen: list[dict[str, Any]] = []
    answer = said({"event": "start"}, END)
    done = run_load(start(specs, answer), SPEC, b"zip", ["stress"], limit=5, on_event=seen.append)
    assert [e["event"] for e in done.events] == ["start", "end"] == [e["event"] for e in seen]
    assert (done.noted, done.stderr) == ("", "noise")
    (spec,) = specs
    assert (spec.entrypoint, spec.command) == (("python",), ("-B", "/tfenv/load.pyz", "stress"))
    assert (spec.binds[-1].target, spec.gpus, spec.image) == ("/tfenv", True, "x")


def test_an_image_without_python_may_have_python3():
    for first in (ProgramMissingError("no python", remedy="x"), said(status=127)):
        specs: list[Spec] = []
        done = run_load(start(specs, first, said(END)), SPEC, b"", [], limit=5)
        assert [s.entrypoint for s in specs] == [("python",), ("python3",)] and done.noted == ""
    neither = [ProgramMissingError("no", remedy="x")] * 2
    assert run_load(start([], *neither), SPEC, b"", [], limit=5).noted == "the image has no python"


def test_an_end_without_a_word_is_noted():
    assert run_load(start([], said({"event": "start"}, status=9)), SPEC, b"", [], limit=5).noted == (
        "it ended with exit status 9 before its end"
    )
    killed = Fake([], Ended(137, out_of_memory=True))
    assert run_load(start([], killed), SPEC, b"", [], limit=5).noted == "the kernel ended it: out of memory"


def test_an_end_that_is_no_good_end_is_noted():
    crashed = run_load(start([], said(END, status=139)), SPEC, b"", [], limit=5)
    assert crashed.noted == "it ended with exit status 139, and does not say why"
    told = run_load(start([], said({"event": "end", "why": "no GPU"}, status=3)), SPEC, b"", [], limit=5)
    assert told.noted == ""


def test_what_cannot_be_shown_ends_no_run():
    def show(event: dict[str, Any]) -> None:
        print(f"{event['throughput']:.0f}")

    rows = [{"event": "row"}, {"event": "row", "throughput": "x"}, {"event": "row", "throughput": [1]}]
    done = run_load(start([], said(*rows, END)), SPEC, b"", [], limit=5, on_event=show)
    assert (len(done.events), done.noted) == (4, "")


def test_what_is_said_without_end_is_not_kept_without_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(running, "LINES_MOST", 1000)
    done = run_load(start([], said(*[{"event": "x"}] * 500, END)), SPEC, b"", [], limit=5)
    assert len(done.events) < 100 and done.noted == "it said more than 1000 bytes"


def test_one_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(running, "_GRACE", 0.05)

    class Stuck(Fake):
        def output(self) -> Iterator[tuple[bytes, bytes]]:
            while not self.killed:
                yield b"", b"."

    stuck = Stuck([], Ended(137))
    assert run_load(start([], stuck), SPEC, b"", [], limit=0).noted == "it had not ended after 0 s"
    assert stuck.killed


def test_without_a_container_the_hosts_python_runs_the_very_program(tmp_path):
    (tmp_path / "load.pyz").write_text(
        "import os, sys; print(sys.argv[1:], os.environ['CUDA_VISIBLE_DEVICES'])"
    )
    spec = Spec(image="", command=("-B", "/tfenv/load.pyz", "stress"), binds=(Bind(tmp_path, "/tfenv"),))
    bare = Bare(Path(sys.executable), {"PYTHONPATH": "/none", "CUDA_VISIBLE_DEVICES": "0"})
    assert bare.argv(spec) == [sys.executable, "-B", str(tmp_path / "load.pyz"), "stress"]
    with bare.container(spec) as running:
        assert b"".join(out for out, _ in running.output()) == b"['stress'] \n"
        assert running.wait().status == 0
    with bare.container(replace(spec, gpus=True)) as running:
        assert b"".join(out for out, _ in running.output()) == b"['stress'] 0\n"
    with pytest.raises(UsageError, match="cannot be started"), Bare(tmp_path / "none").container(spec):
        pass


def test_the_program_is_written_for_a_host_without_tfenv(tmp_path: Path):
    def written(*argv: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "tfenv.load", *argv]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    assert written(str(tmp_path / "load.pyz")).returncode == 0
    assert (tmp_path / "load.pyz").read_bytes() == pack()
    for argv, code in (((), 2), (("/proc/none/x",), 4)):
        done = written(*argv)
        assert done.returncode == code and done.stderr and "Traceback" not in done.stderr
