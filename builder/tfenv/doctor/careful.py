"""What is not asked, because asking would change the host.

- nvidia-smi and CUDA load the kernel module and make device nodes where those are missing (through
  nvidia-modprobe), so they are asked only where both are there;
- `docker info` starts an engine that systemd would start at first use, so a socket that nobody serves is left
  alone; `podman info` makes folders, so Podman is only asked for its version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .table import MODULE

SKIPPED_NO_MODULE = "the kernel module is not loaded: nvidia-smi would load it"
SKIPPED_NO_NODES = "device nodes are missing: nvidia-smi would make them"
SKIPPED_ASLEEP = "the engine is stopped, and asking it would start it"


def why_not_ask(files: Mapping[str, str | None], nodes: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """Why nvidia-smi would change something; empty where it would not.

    Args:
        files, nodes: what was found, by path; env: variables.
    """
    if "/dev/dxg" in nodes:  # WSL has neither module nor nodes of NVIDIA's
        return ""
    control = "/dev/nvidiactl" in nodes
    # A container sees what it was given, which may be less than there is, and loads no modules.
    if "/.dockerenv" in files or "/run/.containerenv" in files or env.get("container"):
        return "" if control else SKIPPED_NO_NODES if MODULE in files else SKIPPED_NO_MODULE
    if MODULE not in files:
        return SKIPPED_NO_MODULE
    numbered = [path for path in nodes if re.fullmatch(r"/dev/nvidia\d+", path)]
    known = [path for path in files if path.startswith("/proc/driver/nvidia/gpus/")]
    return SKIPPED_NO_NODES if not control or len(numbered) < len(known) else ""


def engine_asleep(units: str, env: Mapping[str, str]) -> bool:
    """Whether Docker Engine would be started by being asked.

    Args:
        units: what `systemctl show` says of the services.
    """
    asleep = False
    for text in units.split("\n\n"):
        if "Id=docker.service" in text and "LoadState=loaded" in text:
            asleep = "ActiveState=inactive" in text
    return asleep and not env.get("DOCKER_HOST")
