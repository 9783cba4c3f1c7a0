"""The table of seeded faults: whole, and each of them can be seeded and judged. No engine, no TensorFlow."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpu import running, telling
from gpu.fault import Fault, Run, runs
from gpu.fault_table import FAULTS, WITHOUT_GPU
from gpu.judging import cause, events, false_alarms

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ROOT / "tests" / "gpu" / "seeds"
IMAGE_TESTS = (ROOT / "tests" / "images" / "test_faults.py").read_text()
# Each needs a second container, which a fault of one image is not: tests/verifier/test_verify_multi_worker.py
EXCUSED = {"multi_worker"}


@pytest.fixture(scope="module")
def python() -> Iterator[Any]:
    """A function that runs Python with the seeds, and returns what it printed."""

    def run(code: str, seeds: str, **env: str) -> str:
        path = os.pathsep.join(map(str, (SEEDS, ROOT / "verifier")))
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            env={**os.environ, "PYTHONPATH": path, "TFENV_TEST_SEEDS": seeds, **env},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    yield run


def suite_checks() -> list[dict[str, Any]]:
    words = [sys.executable, "-B", str(ROOT / "verifier"), "--list"]
    found = {}
    for suite in ("smoke", "full"):
        done = subprocess.run([*words, "--suite", suite], capture_output=True, text=True, check=True)
        for line in map(json.loads, done.stdout.splitlines()):
            if line["event"] == "listed":
                found[line["name"]] = line
    return list(found.values())


def test_there_are_faults_enough() -> None:
    assert len(FAULTS) >= 20
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_every_check_of_the_suite_has_a_fault() -> None:
    checks = {check["name"] for check in suite_checks()}
    seeded = {fault.check for fault in FAULTS}
    assert seeded | set(WITHOUT_GPU) | EXCUSED >= checks
    assert seeded | set(WITHOUT_GPU) <= checks
    # A check without a fault here fails in a test of an image.
    for check in WITHOUT_GPU:
        assert re.search(
            rf"caught\([^#]*?\b{check}=|check_of\(report, \"{check}\"\)", IMAGE_TESTS, re.DOTALL
        ), check


def test_the_table_is_consistent() -> None:
    known = set(python_names())
    for fault in FAULTS:
        assert set(fault.severity.split(" or ")) <= {"error", "warning", "info"}, fault.name
        assert set(fault.seeds) <= known, fault.name
        assert (
            fault.seeds
            or fault.env
            or fault.absent
            or fault.declare
            or fault.expect_gpus
            or fault.shm != "2g"
        )
        shortened = any(seed.startswith("shorter") for seed in fault.seeds)
        assert shortened == bool(fault.limit), f"{fault.name}: a limit is only read by those seeds"
        assert not (fault.absent and fault.on_cpu), "files are hidden by the runner alone"
        re.compile(fault.cause)


def python_names() -> list[str]:
    done = subprocess.run(
        [
            sys.executable,
            "-B",
            "-c",
            "import sitecustomize as s, seed_driver as d; print(*s.SEEDS, *d.NAMES)",
        ],
        env={**os.environ, "PYTHONPATH": str(SEEDS), "TFENV_TEST_SEEDS": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_every_seed_is_used() -> None:
    used = {seed for fault in FAULTS for seed in fault.seeds} | set(running.ON_CPU)
    assert set(python_names()) <= used | {"without_cuda"}  # that one is seeded in an image test


def test_faults_of_one_run_go_together() -> None:
    for run in runs(FAULTS):
        assert len({fault.check for fault in run.faults}) == 1, run.name
        assert len({fault.least_gpus for fault in run.faults}) == 1, run.name
        for field in ("gpus", "shm", "expect_gpus", "limit"):
            told = {getattr(fault, field) for fault in run.faults} - {
                getattr(Fault, field, None),
                "all",
                "2g",
                0,
            }
            assert len(told - {None}) <= 1, (run.name, field)
        names = [name for fault in run.faults for name in fault.env]
        assert len(names) == len(set(names)), run.name


def test_a_made_up_driver_shows_one_gpu_and_each_change_of_it(python: Any) -> None:
    code = "import json; from tfenv_verify import gpu; print(json.dumps(gpu.probe().as_json()))"

    def told(seeds: str) -> Any:
        return json.loads(python(code, seeds))

    plain = told("one_gpu")
    assert (plain["state"], plain["count"], plain["nvml"]["count"]) == ("present", 1, 1)
    assert plain["devices"][0]["compute_capability"] == "9.0"
    assert told("one_gpu,old_driver")["cuda"] == "10.2"
    assert told("one_gpu,old_gpu,prohibited")["devices"][0] == {
        **plain["devices"][0],
        "compute_capability": "3.5",
        "compute_mode": "prohibited",
    }
    assert told("one_gpu,driver_mismatch")["error"] == 803
    assert told("one_gpu,lost_gpu")["nvml"]["count"] == 2
    assert told("one_gpu,mig")["nvml"]["devices"][0]["mig"] is True


def test_a_real_library_is_changed_each_time_it_is_asked(python: Any, tmp_path: Path) -> None:
    """ctypes keeps a function that was asked for once."""
    code = (
        "import seed_driver, ctypes; seed_driver.CHANGES['x'] = ('libm', 'abs', lambda real, n: real(n) + 1);"
        "seed_driver.start(['x']); m = ctypes.CDLL('libm.so.6'); m.abs = None; del m.abs;"
        "c = ctypes.CDLL('libc.so.6'); print(c.abs(-3), c.labs(-3))"
    )
    assert python(code.replace("'libm', 'abs'", "'libc', 'abs'"), "").split() == ["4", "3"]
    twice = code.replace("'libm', 'abs'", "'libc', 'abs'").replace("c.labs(-3)", "c.abs(-3)")
    assert python(twice, "").split() == ["4", "4"]


def test_without_a_name_nothing_is_changed(python: Any) -> None:
    code = "import ctypes, builtins; print(ctypes.CDLL.__module__, builtins.__import__.__module__)"
    assert python(code, "") == "ctypes builtins"


def test_a_seed_waits_for_its_module(python: Any, tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("class nn:\n    softmax = staticmethod(lambda x: x)\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import tensorflow as tf; " + (
        "print(*(tf.nn.softmax(1.0) for _ in range(3)))"
    )
    assert python(code, "softmax_nan") == "nan nan 1.0"


def test_limits_are_shortened_and_the_cpu_stands_in(python: Any) -> None:
    code = (
        "from tfenv_verify import main; from tfenv_verify.checks import CHECKS, multi_gpu;"
        "print(max(c.timeout for c in main.CHECKS), main.PROBE_SECONDS, multi_gpu.SECONDS,"
        "main._run_one.__module__)"
    )
    seeds = "shorter_checks,shorter_parts,shorter_probe,on_cpu"
    assert python(code, seeds, TFENV_TEST_LIMIT="7") == "7.0 7.0 7.0 seed_suite"


FAULT = Fault(name="f", check="xla", cause="off by .*\nby much")


def event(
    severity: str = "error", status: str = "fail", message: str = "off by 1", **more: str
) -> dict[str, Any]:
    finding = {"severity": severity, "message": message, "evidence": "by much", "remedy": "do", **more}
    return {"event": "check", "name": "xla", "status": status, "findings": [finding]}


def test_a_fault_is_found_by_an_error_with_its_cause_and_a_remedy() -> None:
    assert cause(FAULT, event()) == "off by 1"
    assert cause(FAULT, event(status="pass")) == ""
    assert cause(FAULT, event(severity="warning")) == ""
    assert cause(FAULT, event(message="something else")) == ""
    assert cause(FAULT, event(remedy="")) == ""
    either = Fault(name="f", check="xla", cause="off", severity="warning or info")
    assert cause(either, event(severity="info", status="pass", remedy="")) == "off by 1"


def test_an_error_or_the_cause_of_a_fault_is_a_false_alarm() -> None:
    warned = Fault(name="w", check="xla", cause="off", severity="warning")
    assert false_alarms("xla", event(), [FAULT]) == ["off by 1", "f"]
    assert false_alarms("xla", event(severity="warning", status="pass"), [FAULT, warned]) == ["w"]
    assert false_alarms("xla", event(severity="info", status="pass"), [FAULT, warned]) == []


def found(name: str, message: str, evidence: str = "", severity: str = "error") -> bool:
    """Whether the finding is the cause of this fault of the table."""
    fault = next(fault for fault in FAULTS if fault.name == name)
    status = "fail" if severity == "error" else "pass"
    return bool(cause(fault, event(severity, status, message, evidence=evidence)))


@pytest.mark.parametrize("capabilities", ["3.5", "3.5, 3.5", "3.5, 3.5, 3.5, 3.5"])
def test_another_capability_is_found_with_any_number_of_gpus(capabilities: str) -> None:
    name = "capability of CUDA and TensorFlow differ"
    assert found(name, f"CUDA says compute capability {capabilities}, TensorFlow 9.0, 9.0")
    assert not found(name, f"CUDA says compute capability 8.0, {capabilities}, TensorFlow 9.0, 9.0")


def test_an_nccl_that_is_known_to_fail_is_not_taken_for_one_without_a_network() -> None:
    name = "NCCL finds no network interface"
    ended = "NcclAllReduce ended with code 1: InternalError: unhandled system error"
    known = (
        "NcclAllReduce hung: it had not ended after 30 s and was killed; known of this row: the NCCL 2.16.5"
    )
    silent = "x:1:1 [0] bootstrap.cc:88 NCCL WARN Bootstrap : no socket interface found"
    assert found(name, ended)
    assert found(name, known, silent, "warning")
    assert not found(name, known, "NCCL version 2.16.5", "warning")
    assert not found(name, f"{ended}; known of this row: the NCCL 2.16.5", severity="warning")


def test_events_are_read_whatever_else_is_printed() -> None:
    assert events(f'noise\n{{"event": "start"}}\n[]\n{json.dumps(event())}\n{{"event": "che') == [event()]


def test_a_line_for_each_fault(tmp_path: Path) -> None:
    run = Run("r", (FAULT, Fault(name="g", check="xla", cause="nothing like it")))
    ran = running.Ran(json.dumps(event()), "the end", 1.23)
    first, second = telling.told(run, ran)
    assert (first["name"], first["check"], first["caught"], first["cause"], first["seconds"]) == (
        "f",
        "xla",
        True,
        "off by 1",
        1.2,
    )
    assert (second["caught"], second["said"], second["tail"]) == (False, ["error: off by 1"], "the end")
    (nothing,) = telling.told(Run("r", (FAULT,)), running.Ran("", "killed", 9.0))
    assert (nothing["caught"], nothing["status"]) == (False, "no result")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([("a", True), ("untouched", False)], 0),
        ([("a", False), ("untouched", False)], 1),
        ([("a", True), ("untouched", True)], 1),
        ([("a", None), ("untouched", False)], 3),
        ([("a", None), ("b", False)], 1),
        ([], 1),
    ],
)
def test_the_exit_code(lines: list[tuple[str, bool | None]], code: int) -> None:
    assert telling.outcome([{"name": name, "caught": caught} for name, caught in lines]) == code


def test_a_run_has_all_options_of_its_faults(tmp_path: Path) -> None:
    library = tmp_path / "opt/x/libcufft.so.11"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"x")
    (library.parent / "libcufft.so").symlink_to("libcufft.so.11")
    bench = running.Bench(tmp_path, Path("c"), Path("s"), Path("b"), Path("/scratch"))
    run = Run(
        "r",
        (
            Fault(name="f", check="xla", cause="", absent=("**/libcufft.so*",), env={"A": "1"}, shm="64m"),
            Fault(name="g", check="xla", cause="", seeds=("xla_hangs",), limit=30, gpus="0", expect_gpus=2),
        ),
    )
    line = " ".join(running.command(bench, run, Path("/suite")))
    for part in (
        "--gpus 0 --shm-size 64m",
        "--bind /suite:/tmp/tfenv-verify",
        "--bind /scratch/empty:/opt/x/libcufft.so.11 --env",
        "--env TFENV_TEST_SEEDS=xla_hangs --env TFENV_TEST_LIMIT=30.0 --env A=1",
        "--expect-gpus 2 --check xla",
    ):
        assert part in line
    with pytest.raises(FileNotFoundError, match="libnone"):
        running.command(
            bench, Run("r", (Fault(name="f", check="xla", cause="", absent=("**/libnone*",)),)), tmp_path
        )


def test_what_needs_more_gpus_is_not_seeded() -> None:
    can, cannot = telling.seedable(FAULTS, 1, on_cpu=False)
    assert {fault.least_gpus for fault in can} == {1}
    assert {fault.least_gpus for fault in cannot} == {2}
    shown, _ = telling.seedable(FAULTS, 0, on_cpu=True)
    assert len(shown) >= 20
    checked = telling.untouched(shown, on_cpu=True)
    assert {run.check for run in checked} == {fault.check for fault in shown} - {"gpu_visible"}
