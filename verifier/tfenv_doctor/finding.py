"""What the rules share: a finding, and small questions to the facts."""

from __future__ import annotations

from typing import Any, Dict

Facts = Dict[str, Any]
Finding = Dict[str, str]
DOCS = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"


def found(grade: str, title: str, cause: str, remedy: str, source: str) -> Finding:
    """A finding: grade is ``broken``, ``absent``, ``limit`` or ``note``."""
    return {"grade": grade, "title": title, "cause": cause, "remedy": remedy, "source": source}


def cuda(of: Facts) -> Dict[str, Any]:
    """What CUDA's driver library said."""
    return of["driver"].get("cuda") or {}


def count(of: Facts) -> int:
    """How many GPUs CUDA sees."""
    return int(cuda(of).get("count") or 0)


def origin(library: Dict[str, str], of: Facts) -> str:
    """Whose a driver library is: ``host`` (the runtime put it in), ``compat``, ``wsl``, or the ``image``."""
    if "/compat" in library["end"]:
        return "compat"
    if "/wsl/" in library["end"]:
        return "wsl"
    mounted = any(path in (library["end"], library["path"]) for path in of["injected"])
    return "host" if mounted or "singularity" in library["path"] else "image"
