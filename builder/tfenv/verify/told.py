"""What the suite tells of the host that it ran on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tfenv.report import Host


def told_host(facts: Mapping[str, Any]) -> Host:
    """The host, by the facts at the suite's end."""
    gpus = facts.get("gpus")
    return Host(
        kernel=str(facts.get("kernel", "")),
        machine=str(facts.get("machine", "")),
        gpus=tuple(str(name) for name in gpus) if isinstance(gpus, list) else (),
        driver=driver_version(str(facts.get("driver", ""))),
    )


def with_gpus(host: Host, facts: Mapping[str, Any]) -> Host:
    """The host with the GPUs that the suite saw, where nvidia-smi outside did not tell of any."""
    said = told_host(facts)
    return host if host.gpus else replace(host, gpus=said.gpus, driver=said.driver if said.gpus else "")


def driver_version(line: str) -> str:
    """``580.159.04`` of the first line of /proc/driver/nvidia/version; what is no such line stays."""
    found = re.search(r"Module(?: for \S+)?\s+([0-9.]+)", line)
    return found.group(1) if found else line
