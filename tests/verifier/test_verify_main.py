from __future__ import annotations

import json
import os
import subprocess
import sys
import zipapp
from pathlib import Path
from typing import Any

import pytest
from tfenv_verify.checks import CHECKS, SUITES, Check
from tfenv_verify.gpu import Gpu
from tfenv_verify.main import run_checks, seconds_at_most, select
from tfenv_verify.protocol import UsageError, outcome, verdict

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
    assert {c.name for c in smoke} < {c.name for c in full} == {c.name for c in CHECKS}
    assert [c.name for c in select("smoke", ["xla", "record"])] == ["record", "xla"]


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
    assert len(start["suite_sha256"]) == 64
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
    assert [event["name"] for event in events[:-1]] == [check.name for check in CHECKS]
    assert events[-1] == {"event": "limit", "limit": seconds_at_most(CHECKS)}
    assert {event["name"]: event["accepted"] for event in events[:-1] if event["accepted"]} == {
        "multi_gpu": ["one GPU"]
    }


def test_the_suites_limit_holds_all_of_its_checks() -> None:
    assert seconds_at_most(CHECKS) > sum(check.timeout for check in CHECKS)
    assert seconds_at_most([ANY]) < seconds_at_most([ANY, VISIBLE])


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
