"""Bench: every configuration in a process of its own with a limit, so that a hang is a row, not the end."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Sequence

from tfenv_verify.runner import Ended, run_child, signal_name, suite_command

from . import facts
from .lines import Emit, read
from .nvml import Nvml, NvmlError
from .plan import (
    FAILED,
    HUNG,
    LEFT_OUT,
    OK,
    Config,
    batch_for,
    hung_before,
    limit_for,
    multiples,
    reductions,
    singles,
)

Child = Callable[[Config, float, "dict[str, str]"], Ended]

# What TensorFlow says, and what it means.
_MEANINGS = (
    (r"support Op 'Nccl", "this TensorFlow has no NCCL"),
    (r"ResourceExhausted|OOM when|out of memory", "out of GPU memory"),
    (
        r"No OpKernel was registered|no supported kernel for GPU|Could not find device for node",
        "TensorFlow has no kernel of this precision for a GPU",
    ),
    (
        r"too many resources requested for launch|unhandled cuda error",
        "NCCL cannot run its kernels on this GPU",
    ),
    (r"libdevice|ptxas", "XLA misses ptxas or libdevice"),
)


class Bench:
    """The rows so far, and what is still to be measured."""

    def __init__(self, emit: Emit, child: Child, options: Any, gpus: int, memory: int) -> None:
        self._emit, self._child, self._options = emit, child, options
        self._gpus, self._memory = gpus, memory
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self.rows: list[dict[str, Any]] = []

    def run(self) -> None:
        """All phases: one GPU, the ways to sum gradients, then several GPUs."""
        models, quick = self._options.models, self._options.quick
        # Quickly, each GPU measures configurations of one GPU at the same time as the others.
        lanes = self._gpus if quick and not self._options.allow_cpu else 1
        self._phase(singles(models, quick), lanes, keep=0.45 if self._gpus > 1 else 0.0)
        for model in models:
            self._phase(reductions(self.rows, model, self._gpus))
        for model in models:
            self._phase(multiples(self.rows, model, self._gpus, quick))

    def _phase(self, configs: Sequence[Config], lanes: int = 1, keep: float = 0.0) -> None:
        free = list(range(lanes))

        def one(config: Config) -> None:
            with self._lock:
                lane = free.pop()
            try:
                self._measure(config, lane, lanes, keep)
            finally:
                with self._lock:
                    free.append(lane)

        with ThreadPoolExecutor(lanes) as pool:
            list(pool.map(one, [self._sized(config) for config in configs]))

    def _sized(self, config: Config) -> Config:
        if config.batch:
            return config
        batch = self._options.batch or (
            2 if self._options.allow_cpu else batch_for(config.model, self._memory)
        )
        return Config(**dict(config.as_json(), batch=batch))

    def _measure(self, config: Config, lane: int, lanes: int, keep: float) -> None:
        left = self._options.seconds * (1 - keep) - (time.monotonic() - self._began)
        with self._lock:
            done = list(self.rows)
        usual = min((row["seconds"] for row in done if row["status"] == OK), default=10.0)
        hung = hung_before(config, done)
        if hung or left < usual:
            why = "{} hung with {}".format(config.reduction, hung) if hung else "the time was up"
            row: dict[str, Any] = {"status": LEFT_OUT, "why": why, "seconds": 0.0}
        else:
            limit = limit_for(config, done, self._options.limit)
            env = _environment(lane) if lanes > 1 else dict(os.environ)
            row = judge(self._child(config, limit, env), limit)
        row = dict(row, event="row", lanes=lanes, **config.as_json())
        with self._lock:
            self.rows.append(row)
        self._emit(row)


def judge(ended: Ended, limit: float) -> dict[str, Any]:
    """A row from how its process ended. No result is a failure."""
    seconds = round(ended.seconds, 1)
    phases = re.findall(r"^phase: (.*)$", ended.tail, re.MULTILINE)
    where = "in {}".format(phases[-1]) if phases else "before it used a GPU"
    said = read(ended.result)
    base = {"seconds": seconds, "tail": "\n".join(ended.tail.splitlines()[-25:])}
    if ended.timed_out:
        why = "hung: had not finished after {:.0f} s, {}".format(limit, where)
        return dict(base, status=HUNG, why=why, phase=phases[-1] if phases else "")
    if said and ended.returncode == 0:
        row = dict(said[-1], seconds=seconds)
        return row if row.get("status") == OK else dict(base, **row)
    text = "\n".join(str(item.get("error", "")) for item in said) + "\n" + ended.tail
    known = [meaning for pattern, meaning in _MEANINGS if re.search(pattern, text)]
    how = signal_name(-ended.returncode) if ended.returncode < 0 else "code {}".format(ended.returncode)
    why = known[0] if known else "ended with {} {}".format(how, where)
    error = str(said[-1].get("error", "")) if said else ""
    return dict(base, status=FAILED, why=why, error=error[:1500])


def run(emit: Emit, options: Any) -> int:
    """Emit all events; 0 when something was measured, 1 when nothing ran, 3 without a GPU."""
    began = time.monotonic()
    started = round(time.time() * 1000)
    gpus, memory, driver = look(options.allow_cpu)
    gpus = min(gpus, options.gpus) if options.gpus else gpus
    told = {"quick": options.quick, "gpus": gpus, "repeats": options.repeats, "seconds": options.seconds}
    emit(dict(facts.here(), event="start", kind="bench", started=started, driver=driver, told=told))
    if not gpus:
        emit({"event": "end", "why": "no GPU", "seconds": round(time.monotonic() - began, 2)})
        return 3
    bench = Bench(emit, lambda config, limit, env: _child(config, limit, env, options), options, gpus, memory)
    bench.run()
    any_ran = any(row["status"] == OK for row in bench.rows)
    why = "" if any_ran else "no configuration ran"
    emit({"event": "end", "why": why, "seconds": round(time.monotonic() - began, 2)})
    return 0 if any_ran else 1


def look(allow_cpu: bool) -> tuple[int, int, str]:
    """GPUs that may be used, the least memory of one (bytes), and the driver; by NVML, without CUDA."""
    try:
        nvml = Nvml.open()
    except NvmlError:
        return (2, 0, "") if allow_cpu else (_device_nodes(), 0, "")
    devices = [nvml.about(device) for device in nvml.devices()]
    driver = nvml.driver()
    nvml.close()
    count = len(_visible(os.environ.get("CUDA_VISIBLE_DEVICES"), len(devices)))
    return count, min((device["memory_bytes"] or 0 for device in devices), default=0), driver


def _device_nodes() -> int:
    try:
        return sum(bool(re.fullmatch(r"nvidia\d+", name)) for name in os.listdir("/dev"))
    except OSError:
        return 0


def _visible(variable: str | None, count: int) -> list[str]:
    """What CUDA_VISIBLE_DEVICES leaves of ``count`` GPUs: CUDA stops at the first that is none."""
    if variable is None:
        return [str(n) for n in range(count)]
    found: list[str] = []
    for name in variable.split(","):
        name = name.strip()
        if not name or name == "-1" or (name.isdigit() and int(name) >= count):
            break
        found.append(name)
    return found


def _environment(lane: int) -> dict[str, str]:
    names = _visible(os.environ.get("CUDA_VISIBLE_DEVICES"), 1 << 10)
    return dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=names[lane])


def _child(config: Config, limit: float, env: dict[str, str], options: Any) -> Ended:
    command = suite_command("bench-worker", "--config", json.dumps(config.as_json()))
    command += ["--repeats", str(options.repeats), "--seconds", str(options.each)]
    command += ["--allow-cpu"] if options.allow_cpu else []
    return run_child(command, limit, env=dict(env, TF_CPP_MIN_LOG_LEVEL="1"))
