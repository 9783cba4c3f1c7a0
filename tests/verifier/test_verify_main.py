from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipapp
from pathlib import Path
from typing import Any

import pytest
from tfenv_verify.checks import CHECKS, SUITES, Check
from tfenv_verify.gpu import Gpu
from tfenv_verify.main import (
    SUITE_SECONDS,
    Stop,
    StoppedError,
    run_checks,
    run_in_time,
    seconds_at_most,
    select,
)
from tfenv_verify.protocol import UsageError, outcome, verdict
from tfenv_verify.runner import Ended

VERIFIER = Path(__file__).resolve().parents[2] / "verifier"
PRESENT, ABSENT, BROKEN = Gpu(library=True, count=1), Gpu(), Gpu(nodes=True)
ANY = Check("any", lambda context, report: None, "any", 1, ("smoke", "full"))
VISIBLE = Check("gpu_visible", lambda context, report: None, "gpu", 1, ("smoke", "full"))
XLA = Check("xla", lambda context, report: None, "gpu", 1, ("full",))


def ignore(event: dict[str, Any]) -> None:
    """Where events go that the test reads from the result."""


def made(state: Gpu) -> dict[str, str]:
    outcomes = run_checks([ANY, VISIBLE, XLA], state, lambda c: outcome(c.name, "pass"), ignore)
    return {event["name"]: event.get("reason", event["status"]) for event in outcomes}


def test_with_a_gpu_everything_runs() -> None:
    assert set(made(PRESENT).values()) == {"pass"}


def test_without_a_gpu_gpu_checks_are_not_run() -> None:
    assert made(ABSENT) == {"any": "pass", "gpu_visible": "no GPU", "xla": "no GPU"}


def test_on_a_broken_driver_the_one_that_explains_it_runs() -> None:
    result = made(BROKEN)
    assert result["gpu_visible"] == "pass"
    assert "gpu_visible" in result["xla"]


def test_a_whole_suite_without_a_gpu_never_passes() -> None:
    for suite in SUITES:
        outcomes = run_checks(select(suite, []), ABSENT, lambda c: outcome(c.name, "pass"), ignore)
        assert verdict(outcomes, {}) == "unverified"


def test_suites_and_names_select_in_the_tables_order() -> None:
    smoke, full = select("smoke", []), select("full", [])
    workers = select("workers", [])
    assert {c.name for c in smoke} < {c.name for c in full}
    assert [c.name for c in workers] == ["gpu_visible", "multi_worker"]
    assert {c.name for c in (*full, *workers)} == {c.name for c in CHECKS}
    assert [c.name for c in select("smoke", ["record", "xla"])] == ["xla", "record"]


def test_a_wrong_name_gives_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean record"):
        select("full", ["recrod"])


def test_the_table_is_sound() -> None:
    assert len({c.name for c in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.needs in ("any", "gpu")
        assert check.timeout > 0
        assert check.suites
        assert set(check.suites) <= set(SUITES)
        assert check.as_json()["what"]


def suite(
    *arguments: str, program: Path = VERIFIER, env: dict[str, str] | None = None
) -> tuple[int, list[dict[str, Any]], str]:
    """Run the real suite; CUDA_VISIBLE_DEVICES hides a GPU that this machine may have."""
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        capture_output=True,
        text=True,
        env={"CUDA_VISIBLE_DEVICES": ""} if env is None else env,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_the_zipapp_runs_with_an_empty_environment(tmp_path: Path) -> None:
    packed = tmp_path / "verify.pyz"
    zipapp.create_archive(VERIFIER, packed)
    (tmp_path / "declared.json").write_text('{"cell": "c", "image": "sha256:0"}')
    code, events, _ = suite(
        "--declared",
        str(tmp_path / "declared.json"),
        "--check",
        "second_cuda",
        "gpu_visible",
        program=packed,
    )
    assert [event["event"] for event in events] == ["start", "check", "check", "end"]
    start, _, gpu_visible, end = events
    assert (start["cell"], start["image"]) == ("c", "sha256:0")
    assert len(start["suite_sha256"]) == 64 and start["expect_gpus"] is None
    assert 0 <= time.time() * 1000 - start["started"] < 600_000
    assert (gpu_visible["status"], gpu_visible["reason"]) == ("not-run", "no GPU")
    assert end["facts"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert (code, end["verdict"]) in ((3, "unverified"), (1, "fail"))


def test_a_tensorflow_that_does_not_import_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("raise ImportError('libtensorflow_framework.so.2')")
    env = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(tmp_path)}
    code, events, _ = suite("--check", "tensorflow", env=env)
    assert (code, events[-1]["verdict"]) == (1, "fail")
    assert events[1]["findings"][0]["message"] == (
        "TensorFlow cannot be imported: ImportError: libtensorflow_framework.so.2"
    )


def test_variables_that_are_not_there_fail_with_exit_code_1(tmp_path: Path) -> None:
    declared = tmp_path / "declared.json"
    declared.write_text('{"cell": "c", "env": {"TFENV_TEST": "yes"}}')
    code, events, _ = suite("--declared", str(declared), "--check", "environment")
    assert (code, events[-1]["verdict"]) == (1, "fail")
    assert "TFENV_TEST is not set" in events[1]["findings"][0]["message"]


def test_the_right_environment_passes_with_exit_code_0(tmp_path: Path) -> None:
    declared = tmp_path / "declared.json"
    declared.write_text('{"cell": "c", "env": {"TFENV_TEST": "yes"}}')
    env = {"CUDA_VISIBLE_DEVICES": "", "TFENV_TEST": "yes", "HOME": str(tmp_path)}
    code, events, _ = suite("--declared", str(declared), "--check", "environment", env=env)
    assert (code, events[-1]["verdict"]) == (0, "pass")


def test_list_prints_the_table() -> None:
    code, events, _ = suite("--list", "--suite", "full")
    assert code == 0
    full = select("full", [])
    assert [event["name"] for event in events[:-1]] == [check.name for check in full]
    assert events[-1] == {"event": "limit", "limit": seconds_at_most(full, SUITE_SECONDS["full"])}
    assert {event["name"]: event["accepted"] for event in events[:-1] if event["accepted"]} == {
        "multi_gpu": ["one GPU"],
        "pip_check": ["pip is not installed in this image"],
        "tensorboard": ["TensorBoard is not in this image"],
    }


def test_the_suites_limit_holds_all_of_its_checks() -> None:
    assert seconds_at_most(CHECKS) > sum(check.timeout for check in CHECKS)
    assert seconds_at_most([ANY]) < seconds_at_most([ANY, VISIBLE])


def test_a_suite_takes_no_longer_than_its_own_time() -> None:
    assert SUITE_SECONDS["full"] < seconds_at_most(CHECKS, SUITE_SECONDS["full"]) < seconds_at_most(CHECKS)
    assert seconds_at_most([ANY], 9999.0) == seconds_at_most([ANY])


def taken(left: float, timed_out: bool) -> tuple[dict[str, Any], list[float]]:
    limits: list[float] = []

    def run(check: Check, limit: float) -> Ended:
        limits.append(limit)
        return Ended(0, timed_out, limit, b'{"status": "pass", "findings": [], "facts": {}}', "")

    slow = Check("slow", lambda context, report: None, "any", 60, ("full",))
    return run_in_time(slow, left, 100.0, run), limits


def test_what_the_suites_time_cuts_short_is_not_run() -> None:
    assert taken(500.0, timed_out=False)[0]["status"] == "pass"
    assert taken(500.0, timed_out=True)[0]["status"] == "fail", "its own limit: a hang"
    cut, limits = taken(20.0, timed_out=True)
    assert (cut["status"], limits) == ("not-run", [20.0])
    assert "100 s were over while it ran" in cut["reason"]
    over, limits = taken(1.0, timed_out=False)
    assert (over["status"], limits) == ("not-run", [])
    assert "were over before it" in over["reason"]


def test_a_suite_that_is_stopped_says_what_it_did_not_run() -> None:
    def run(check: Check) -> dict[str, Any]:
        if check is VISIBLE:
            raise StoppedError("the suite was stopped by SIGTERM")
        return outcome(check.name, "pass")

    outcomes = run_checks([ANY, VISIBLE, XLA], PRESENT, run, ignore)
    assert [event["status"] for event in outcomes] == ["pass", "not-run", "not-run"]
    assert outcomes[1]["reason"] == "the suite was stopped by SIGTERM while it ran"
    assert verdict(outcomes, {}) == "unverified"


def test_sigterm_ends_the_real_suite_with_a_verdict(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)")
    process = subprocess.Popen(
        [sys.executable, "-B", str(VERIFIER), "--check", "tensorflow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(tmp_path)},
    )
    assert process.stderr is not None
    while "here" not in process.stderr.readline():
        pass
    process.terminate()
    out, _ = process.communicate(timeout=60)
    start, check, end = [json.loads(line) for line in out.splitlines()]
    assert (start["event"], check["status"], end["verdict"]) == ("start", "not-run", "unverified")
    assert process.returncode == 3


def test_gpus_that_are_expected_and_not_there_fail() -> None:
    code, events, _ = suite("--expect-gpus", "2", "--check", "environment")
    assert [event["name"] for event in events[1:-1]] == ["environment", "gpu_visible"]
    assert (code, events[-1]["verdict"]) == (1, "fail")
    assert events[2]["findings"][0]["message"] == "2 GPU(s) are expected, 0 are seen"
    assert "CUDA_VISIBLE_DEVICES=" in events[2]["findings"][0]["evidence"]
    code, events, _ = suite("--expect-gpus", "0", "--check", "gpu_visible")
    assert (code, events[1]["reason"]) == (3, "no GPU")
    assert suite("--expect-gpus", "some")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs --cluster HOST:PORT,HOST:PORT"),
        (["--cluster", "a:1"], "needs --cluster HOST:PORT,HOST:PORT"),
        (["--cluster", "a:1,b"], "'b' is no host:port"),
        (["--cluster", "a:1,b:1", "--worker", "2"], "the cluster has 0 to 1"),
        (["--cluster", "a:1,b:1", "--worker", "-1"], "is no whole number"),
    ],
)
def test_workers_have_to_know_each_other(arguments: list[str], said: str) -> None:
    code, events, errors = suite("--suite", "workers", *arguments)
    assert (code, events) == (2, []) and said in errors


def test_without_a_gpu_workers_are_not_run() -> None:
    code, events, _ = suite("--suite", "workers", "--cluster", "127.0.0.1:1,127.0.0.1:2")
    assert (code, events[-1]["verdict"]) == (3, "unverified")
    assert [event["reason"] for event in events[1:-1]] == ["no GPU", "no GPU"]
    assert suite("--suite", "workers", "--list")[0] == 0


def test_what_stands_in_for_a_gpu_verifies_nothing() -> None:
    code, events, _ = suite("--check", "second_cuda", "gpu_visible", "--on-cpu", "1")
    assert (code, events[-1]["verdict"]) in ((3, "unverified"), (1, "fail"))
    outcomes = run_checks([ANY, XLA], ABSENT, lambda c: outcome(c.name, "pass"), ignore, on_cpu=True)
    assert [event["status"] for event in outcomes] == ["pass", "pass"]


def test_bad_usage_is_exit_code_2(tmp_path: Path) -> None:
    assert suite("--check", "nonsense")[0] == 2
    assert suite("--suite", "nonsense")[0] == 2
    code, events, errors = suite("--declared", str(tmp_path / "absent.json"))
    assert (code, events) == (2, [])
    assert "absent.json" in errors


def test_the_suite_writes_no_pyc(tmp_path: Path) -> None:
    copy = tmp_path / "verifier"
    for source in VERIFIER.rglob("*.py"):
        target = copy / source.relative_to(VERIFIER)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    subprocess.run(
        [sys.executable, "-B", str(copy), "--check", "environment"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        check=False,
    )
    assert not list(copy.rglob("*.pyc"))


def test_a_signal_between_two_checks_ends_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    stop = Stop()
    assert stop.guard(lambda: {"status": "pass"}) == {"status": "pass"}
    stop.handle()
    with pytest.raises(StoppedError):
        stop.guard(lambda: {"status": "pass"})
    again = Stop()

    def run() -> dict[str, Any]:
        again.handle()
        return {}

    with pytest.raises(StoppedError):
        again.guard(run)
