"""The program with a TensorFlow that is a few lines of Python: how it ends, and what it says then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tfenv.load import pack

# What the worker asks of TensorFlow before it finds that there is no GPU.
NO_GPU = """
class config:
    @staticmethod
    def list_physical_devices(kind):
        return []
"""
CRASH = "import os\nos._exit(5)\n"
HANG = "import time\ntime.sleep(600)\n"


def run(folder: Path, tensorflow: str, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    (folder / "load.pyz").write_bytes(pack())
    (folder / "tensorflow.py").write_text(tensorflow)
    env = {**os.environ, "PYTHONPATH": str(folder)}
    line = [sys.executable, "-B", str(folder / "load.pyz"), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=False, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_stress_without_a_gpu_ends_with_3(tmp_path):
    code, events = run(tmp_path, NO_GPU, "stress", "--minutes", "0.01")
    assert (code, events[-1]["event"], events[-1]["why"]) == (3, "end", "no GPU")
    assert len(events[0]["program"]) == 64


def test_stress_whose_worker_dies_is_broken_off(tmp_path):
    code, events = run(tmp_path, CRASH, "stress", "--minutes", "0.01")
    assert (code, events[-1]["why"]) == (1, "the products ended with code 5")


def test_stress_that_hangs_is_ended(tmp_path):
    code, events = run(tmp_path, HANG, "stress", "--minutes", "0.01", "--start-seconds", "1")
    assert code == 1 and "had not finished" in events[-1]["why"]


def test_a_bench_worker_says_what_went_wrong(tmp_path):
    config = (
        '{"model": "resnet50", "precision": "tf32", "xla": false, "gpus": 1, "reduction": "", "batch": 1}'
    )
    worker = ["bench-worker", "--config", config, "--repeats", "1", "--seconds", "1", "--result-fd", "1"]
    code, events = run(tmp_path, NO_GPU + "float32 = None\n", *worker)
    assert code == 1 and events == [{"error": "NoGpuError: TensorFlow sees 0 GPUs"}]


@pytest.mark.parametrize("line", [[], ["nothing"], ["stress", "--minutes", "soon"]])
def test_a_wrong_line_is_a_usage_error(tmp_path, line):
    code, events = run(tmp_path, "", *line)
    assert (code, events) == (2, [])
