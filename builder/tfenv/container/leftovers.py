"""What a tfenv that was killed has left in the engine: found by a label, removed by the next one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

LABEL = "dev.tfenv.owner"


@cache
def _owner_of(pid: int) -> str:
    boot = _read("/proc/sys/kernel/random/boot_id") or "unknown"
    return f"{boot} {_namespace()} {pid} {started(pid) or ''}"


def owner() -> str:
    """This process, as no other one is called: boot, namespace, number and start."""
    return _owner_of(os.getpid())  # by number: a child that was forked is another one


def started(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None if there is none of this number."""
    told = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return told[19] if len(told) > 19 else None


def is_gone(label: str, me: str, started: Callable[[int], str | None] = started) -> bool:
    """Whether the process that ``label`` names has ended; False where nobody here can know."""
    boot, namespace, pid, when = ([*label.split(), *[""] * 4])[:4]
    if [boot, namespace] != me.split()[:2] or not pid.isdigit() or not when:
        return False
    return started(int(pid)) != when


def remove_leftovers(api: Any) -> None:
    """Remove the containers, then the networks, of those that are gone; what cannot be removed stays.

    Args:
        api: ``docker.APIClient``.
    """
    import docker.errors
    import requests

    with contextlib.suppress(docker.errors.DockerException, requests.RequestException):
        for one in api.containers(all=True, filters={"label": LABEL}):
            if is_gone(one["Labels"].get(LABEL, ""), owner()):
                with contextlib.suppress(docker.errors.APIError):
                    api.remove_container(one["Id"], v=True, force=True)
        for one in api.networks(filters={"label": LABEL}):
            if is_gone(one["Labels"].get(LABEL, ""), owner()):
                with contextlib.suppress(docker.errors.APIError):
                    api.remove_network(one["Id"])


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "none"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
