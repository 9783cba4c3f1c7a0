"""What of this machine a verdict depends on."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tfenv.engine import Engine, Run
from tfenv.errors import NotReadyError
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
    done = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", *chosen(gpus)])
    rows = [line.rsplit(",", 1) for line in done.stdout.splitlines() if "," in line]
    if done.returncode != 0 or not rows:
        return host
    names = tuple(name.strip() for name, _ in rows)
    return replace(host, gpus=names, driver=rows[0][1].strip())


def given(wanted: str | None) -> bool | str:
    """What a container is given, of what ``runline.choose_gpus`` says."""
    return True if wanted == "all" else wanted or False


def chosen(gpus: bool | str) -> list[str]:
    """The option by which nvidia-smi shows what the engine would give; none for all."""
    if gpus is True or gpus in ("all", "auto"):
        return []
    text = str(gpus)
    names = ",".join(map(str, range(int(text)))) if text.isdigit() else text.removeprefix("device=")
    return ["-i", names]


def there(gpus: bool | str, run: Run) -> bool | str:
    """The same GPUs by their numbers, where they are chosen; proved to be here.

    Args:
        gpus: as of ``container.Spec``. MIG devices stay as they are: nvidia-smi does not tell of one.

    Raises:
        NotReadyError: this host lacks one of them.
    """
    option = chosen(gpus) if gpus else []
    if not option or "MIG-" in option[-1]:
        return gpus
    done = run(["nvidia-smi", "--query-gpu=index", "--format=csv,noheader", *option])
    found = done.stdout.split()
    wanted = option[-1].split(",")
    if done.returncode or len(found) != len(wanted) or not all(map(str.isdigit, found)):
        raise NotReadyError(
            f"this host does not have the GPUs {option[-1]}", remedy="see which there are: nvidia-smi -L"
        )
    # In the order that was asked for, where they were named by number.
    return "device=" + ",".join(wanted if set(wanted) == set(found) else found)


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
