"""What of this machine a verdict depends on."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tfenv.engine import Engine, Run
from tfenv.given_gpus import smi_option
from tfenv.report import Host


def host_facts(
    run: Run,
    engine: Engine,
    *,
    gpus: bool | str,
    cpuinfo: Callable[[], str] = lambda: _read("/proc/cpuinfo"),
    machine: Callable[[], str] = platform.machine,
) -> Host:
    """What matters of this machine. GPUs count only where the container gets them.

    Args:
        gpus: which of them it gets, as of ``container.Spec``.
    """
    models = [line.split(":", 1)[1].strip() for line in cpuinfo().splitlines() if "model name" in line]
    host = Host(
        kernel=engine.kernel,
        machine=machine(),
        cpu=models[0] if models else "",
        docker=engine.server_version or "",
    )
    if not gpus:
        return host
    done = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", *smi_option(gpus)])
    rows = [line.rsplit(",", 1) for line in done.stdout.splitlines() if "," in line]
    if done.returncode != 0 or not rows:
        return host
    names = tuple(name.strip() for name, _ in rows)
    return replace(host, gpus=names, driver=rows[0][1].strip())


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
