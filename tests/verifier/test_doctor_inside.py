"""The part of the doctor that runs inside of images: what it finds from facts, and what it does not."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from doctor_facts import NO_CUDA, NOTHING, READY, error, library
from tfenv.container import Ended, ProgramMissingError
from tfenv.doctor import inside
from tfenv.errors import NotReadyError
from tfenv_doctor import deep, main, rules
from tfenv_doctor.sources import Sources

BAKED = {
    "injected": [],
    "libraries": [library("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.565.57.01", "565.57.01")],
    "driver": {"cuda": {"version": "12.7", "error": 803, "count": 0}, "nvml": {"error": 18}, "files": []},
}
HOST_OLD = {
    "module": "550.90.07",
    "injected": ["/usr/lib/x86_64-linux-gnu/libcuda.so.550.107.02"],
    "libraries": [library("/usr/lib/x86_64-linux-gnu/libcuda.so.550.107.02", "550.107.02")],
    "driver": {"cuda": {"version": "12.4", "error": 803, "count": 0}, "nvml": {"error": 18}, "files": []},
}
COMPAT = {
    "module": "455.32.00",
    "injected": ["/usr/lib/x86_64-linux-gnu/libcuda.so.455.32.00"],
    "libraries": [library("/usr/local/cuda-11.2/compat/libcuda.so.460.73.01", "460.73.01")],
    **error(100, files=["/usr/local/cuda-11.2/compat/libcuda.so.460.73.01"]),
}
#: finding, what differs from a container in which all is well, and what makes the finding go away again.
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("musl-base", {"musl": True}, {"musl": False}),
    (
        "no-gpu-asked-for",
        {**NOTHING, "env": {"NVIDIA_VISIBLE_DEVICES": "void"}},
        {"env": {"NVIDIA_VISIBLE_DEVICES": "all"}},
    ),
    (
        "mig-legacy-device-id",
        {**NOTHING, "env": {"NVIDIA_VISIBLE_DEVICES": "MIG-GPU-1/1/0"}},
        {"env": {"NVIDIA_VISIBLE_DEVICES": "MIG-1"}},
    ),
    ("container-without-gpu", NOTHING, {"nodes": READY["nodes"]}),
    ("driver-hangs", {"driver": {"hangs": True}}, {"driver": READY["driver"]}),
    ("driver-hangs", {"driver": {"crashed": -11}}, {"driver": READY["driver"]}),
    (
        "devices-without-rights",
        {"nodes": dict.fromkeys(READY["nodes"], "EPERM"), **error(100)},
        {"nodes": READY["nodes"]},
    ),
    (
        "devices-without-rights",
        {"nodes": dict.fromkeys(READY["nodes"], "EACCES"), **error(100)},
        {"nodes": READY["nodes"]},
    ),
    ("driver-libs-baked-into-image", BAKED, {"libraries": READY["libraries"], "driver": READY["driver"]}),
    ("host-driver-needs-reboot", HOST_OLD, {"module": "550.107.02"}),
    ("cuda-compat-shadows-driver", COMPAT, error(100)),
    ("cuda-stub-loaded", error(34), error(100)),
    (
        "driver-library-missing",
        {"driver": NO_CUDA, "env": {"NVIDIA_DRIVER_CAPABILITIES": "utility"}},
        {"driver": READY["driver"]},
    ),
    ("driver-library-missing", {"driver": NO_CUDA}, {"driver": READY["driver"]}),
    (
        "cuda-visible-devices-invalid",
        {**error(100), "env": {"CUDA_VISIBLE_DEVICES": "/bin/bash"}},
        {"env": {}},
    ),
    (
        "cuda-visible-devices-invalid",
        {**error(100), "env": {"CUDA_VISIBLE_DEVICES": "-1"}},
        {"driver": READY["driver"]},
    ),
    ("cuda-visible-devices-invalid", {**error(100), "env": {"CUDA_VISIBLE_DEVICES": "3"}}, {"gpu_nodes": 8}),
    (
        "uvm-missing",
        {"nodes": {"/dev/nvidia0": "ok", "/dev/nvidiactl": "ok"}, **error(999)},
        {"nodes": READY["nodes"]},
    ),
    ("cuda-error", error(802), {"driver": READY["driver"]}),
    ("cuda-error", error(100), {"env": {"CUDA_VISIBLE_DEVICES": "x"}}),
    ("cuda-error", error(12345), {"driver": READY["driver"]}),
    ("cpu-build", {"packages": {"tensorflow-cpu": "2.15.1"}}, {"packages": {"tensorflow": "2.15.1"}}),
    (
        "tensorflow-sees-no-gpu",
        {"deep": {"version": "2.16.1", "cuda": True, "gpus": 0, "missing": ["libcudnn.so.8"]}},
        {"deep": {"version": "2.16.1", "cuda": True, "gpus": 1, "missing": []}},
    ),
    ("tensorflow-sees-no-gpu", {"deep": {"error": "ImportError: libX"}}, {"deep": None}),
    (
        "tensorflow-sees-no-gpu",
        {"deep": {"version": "2.16.1", "cuda": False, "gpus": 0, "missing": []}},
        {**NOTHING},
    ),
    (
        "host-env-leak-possible",
        {"env": {"PYTHONPATH": "/home/u/miniforge/lib/python3.12/site-packages"}},
        {"env": {"PYTHONPATH": "/opt/lib/python3.11/site-packages"}},
    ),
    (
        "host-env-leak-possible",
        {"env": {"LD_LIBRARY_PATH": "/home/u/miniforge/lib"}},
        {"env": {"LD_LIBRARY_PATH": "/opt/conda/lib", "CONDA_PREFIX": "/opt/conda"}},
    ),
    ("two-cudas", {"cuda": {"base": ["11.8"], "wheels": ["12"]}}, {"cuda": {"base": ["11.8"], "wheels": []}}),
    ("no-place-to-write", {"home": "/", "home_writable": False}, {"home_writable": True}),
    ("shared-memory-small", {"shm_mb": 67}, {"shm_mb": 2147}),
    ("fewer-gpus-than-host", {"host": {"gpus": 8}}, {"host": {"gpus": 1}}),
]


def found(*changes: dict[str, Any]) -> list[dict[str, str]]:
    facts = dict(READY)
    for change in changes:
        facts.update(change)
    return rules.judge(facts)


@pytest.mark.parametrize(
    ("name", "change", "undone"), CASES, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(CASES)]
)
def test_finding(name: str, change: dict[str, Any], undone: dict[str, Any]) -> None:
    assert found(change)[0]["id"] == name
    assert name not in [one["id"] for one in found(change, undone)]


def test_every_rule_is_shown() -> None:
    assert {name for name, _ in rules.RULES} == {name for name, _, _ in CASES}


def test_nothing_is_found_where_all_is_well() -> None:
    assert found() == []
    assert rules.code(READY, []) == 0


def test_look_alikes_of_a_version_mismatch() -> None:
    baked, host = found(BAKED)[0], found(HOST_OLD)[0]
    assert "reboot" not in json.dumps(baked) and "565.57" in baked["title"] and "535" in baked["title"]
    assert "reboot" in host["remedy"] and "550.90.07" in host["title"]


def test_no_gpu_in_here_has_three_causes() -> None:
    given = found(NOTHING)[0]
    no_driver = found(NOTHING, {"module": ""})[0]
    no_gpu = found(NOTHING, {"module": "", "bus": 0})[0]
    assert "--gpus all" in given["remedy"] and given["grade"] == "broken"
    assert "no NVIDIA driver is loaded" in no_driver["title"]
    assert no_gpu["grade"] == "absent"


@pytest.mark.parametrize(
    ("change", "code"),
    [({}, 0), (error(100), 1), ({**NOTHING, "module": "", "bus": 0}, 4), ({"driver": {}}, 3)],
)
def test_exit_code(change: dict[str, Any], code: int) -> None:
    facts = {**READY, **change}
    assert rules.code(facts, rules.judge(facts)) == code


def test_what_tensorflow_misses() -> None:
    text = (
        "W dso_loader.cc:64] Could not load dynamic library 'libcudnn.so.8'; dlerror: "
        "libcudnn.so.8: cannot open shared object\n"
        "W TF-TRT Warning: Could not find or load dynamic library 'libnvinfer.so.7'\n"
    )
    assert deep.missing(text) == ["libcudnn.so.8"]
    assert deep.missing("all is well") == []


class Fake(Sources):
    """An image without anything."""

    def __init__(self) -> None:
        self.env = {"HOME": "/nowhere"}

    def read(self, path: str) -> str | None:
        return None

    def matching(self, pattern: str) -> list[str]:
        return []

    def end(self, path: str) -> str:
        return ""

    def space(self, folder: str) -> int:
        return 0

    def run(self, argv: Any, limit: float, env: Any = None) -> tuple[int, str, str]:
        return (127, "", "") if argv[0] == "nvidia-smi" else (0, "no JSON", "")


def test_whatever_is_there_it_says_something(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--host", "no JSON"], Fake()) in (1, 3, 4)
    assert "begin with this" in capsys.readouterr().out


def test_the_file_runs_with_the_standard_library_alone(tmp_path: Path) -> None:
    path = tmp_path / "doctor.pyz"
    path.write_bytes(inside.pack())
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(path), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1, 3, 4), done.stderr
    assert json.loads(done.stdout)["code"] == done.returncode


def test_the_file_is_always_the_same() -> None:
    assert inside.pack() == inside.pack()
    names = zipfile.ZipFile(io.BytesIO(inside.pack())).namelist()
    assert "__main__.py" in names and "tfenv_doctor/driver.py" in names


class Running:
    def __init__(self, out: bytes, status: int, err: bytes = b"") -> None:
        self.pieces, self.status = [(out, err)], status

    def output(self) -> Iterator[tuple[bytes, bytes]]:
        yield from self.pieces

    def wait(self) -> Ended:
        return Ended(self.status)

    def kill(self) -> None: ...


def starting(*answers: Any) -> Any:
    left = list(answers)
    specs: list[Any] = []

    @contextmanager
    def start(spec: Any) -> Iterator[Any]:
        specs.append(spec)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield answer

    start.specs = specs  # type: ignore[attr-defined]
    return start


def run_in(start: Any, **more: Any) -> tuple[str, int]:
    options = {"deep": False, "as_json": False, "gpus": True, **more}
    return inside.run_in(start, "image", {"gpus": 1, "driver": "535"}, **options)


def test_it_runs_in_an_image() -> None:
    start = starting(Running(b"ready", 0))
    assert run_in(start, deep=True) == ("ready", 0)
    (spec,) = start.specs
    assert spec.gpus and "--deep" in spec.command and spec.binds[0].read_only


def test_an_image_whose_python_is_python3() -> None:
    missing = ProgramMissingError("no python", remedy="")
    assert run_in(starting(missing, Running(b"no GPU in here", 4))) == ("no GPU in here", 4)


def test_an_image_without_a_python() -> None:
    missing = ProgramMissingError("no python", remedy="")
    with pytest.raises(NotReadyError, match="no Python"):
        run_in(starting(missing, missing))


def test_a_python_that_ends_is_no_verdict() -> None:
    said, code = run_in(starting(Running(b"", 1, b"Traceback\nSyntaxError: x")))
    assert code == 3 and "SyntaxError" in said


def test_what_a_hostile_image_says_drives_no_terminal_and_is_bounded() -> None:
    said, _ = run_in(starting(Running(b"\x1b]0;title\x07ready\x1b[2J" + b"x" * (3 << 20), 0)))
    assert said.startswith("ready") and "\x1b" not in said and len(said) <= 1 << 20
    said, _ = run_in(starting(Running(b"", 1, b"\x1b[31mSyntaxError")))
    assert said.endswith(": SyntaxError")
