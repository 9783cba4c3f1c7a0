"""Stress: the products in a process of their own, and what the GPUs say of themselves meanwhile."""

from __future__ import annotations

import os
import time
from typing import Any

from tfenv_verify.runner import run_child, suite_command

from . import facts
from .lines import Emit, read
from .sampler import Sampler

_START_SECONDS = 300.0  # TensorFlow's import, the GPU's first use and the first comparisons


def run(emit: Emit, options: Any) -> int:
    """Emit all events; the exit code says how far it came (0 to the end, 1 broken off, 3 no GPU)."""
    seconds = options.minutes * 60.0
    began, wall = time.monotonic(), time.time()
    emit(
        dict(facts.here(), event="start", kind="stress", minutes=options.minutes, started=round(wall * 1000))
    )
    command = suite_command("stress-worker", "--seconds", repr(seconds))
    command += ["--gpus", str(options.gpus), "--size", str(options.size), "--spoil", str(options.spoil)]
    command += ["--allow-cpu"] if options.allow_cpu else []
    # So that TensorFlow counts the GPUs as NVML does.
    env = dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID", TF_CPP_MIN_LOG_LEVEL="1")
    limit = seconds + (options.start_seconds or _START_SECONDS)
    with Sampler(emit, interval=options.interval, clock=lambda: time.monotonic() - began):
        ended = run_child(command, limit, env=env)
    said = read(ended.result)
    for event in said:
        if event.get("event") == "progress":
            event["t"] = round(float(event.pop("at")) - wall, 2)
        emit(event)
    kinds = [event.get("event") for event in said]
    why = ""
    if "no-gpu" in kinds:
        why = "no GPU"
    elif "unloaded" not in kinds:
        how = "had not finished after {:.0f} s".format(ended.seconds) if ended.timed_out else ""
        why = "the products {}".format(how or "ended with code {}".format(ended.returncode))
    tail = ended.tail if why else ""
    emit({"event": "end", "why": why, "tail": tail, "seconds": round(time.monotonic() - began, 2)})
    return 3 if why == "no GPU" else 1 if why else 0
