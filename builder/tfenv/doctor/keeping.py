"""What is kept of what was read: the lines and keys that something is decided from, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_DRIVER = re.compile(
    r"nvidia|nvrm|\bxid\b|nouveau|nova|vfio|iommu|nvswitch|secure ?boot|lockdown|module verification"
    r"|required key|amdgpu|fallen off|AER:.*(10de|nvidia)",
    re.IGNORECASE,
)
_MODULES = re.compile(
    r"^(nvidia\w*|nouveau|nova\w*|vfio\w*|gdrdrv|nvidia_peermem|amdgpu|i915|xe) ", re.MULTILINE
)
_MOUNTS = re.compile(
    r"nvidia|cuda|libcuda|/dev/shm|/sys/fs/cgroup|^\S+ / | /dev | /usr/lib/wsl|/tmp ", re.IGNORECASE
)
_CDI = re.compile(
    r"^\s*\"?(cdiVersion|kind)\"?:|name:|\"name\":|libcuda\.so|libnvidia-ml\.so|(hostPath|path)\"?: ?\"?/dev/"
)
_INFO = frozenset(
    [
        "ServerVersion",
        "OperatingSystem",
        "OSType",
        "KernelVersion",
        "Architecture",
        "NCPU",
        "MemTotal",
        "Driver",
        "DriverStatus",
        "CgroupDriver",
        "CgroupVersion",
        "SecurityOptions",
        "DockerRootDir",
        "DefaultRuntime",
        "Warnings",
        "ServerErrors",
        "CDISpecDirs",
        "DiscoveredDevices",
        "LiveRestoreEnabled",
    ]
)
_DAEMON = frozenset(
    [
        "runtimes",
        "default-runtime",
        "exec-opts",
        "features",
        "data-root",
        "storage-driver",
        "userns-remap",
        "cdi-spec-dirs",
        "default-shm-size",
        "no-new-privileges",
        "selinux-enabled",
        "default-ulimits",
    ]
)
_LINES = 400
_XML_DROPPED = re.compile(
    r"<(supported_clocks|processes|accounted_processes|clocks_event_reasons_counters)>.*?</\1>\s*", re.DOTALL
)


def driver_lines(text: str) -> str:
    """Lines of a kernel log, a configuration or a package list that are of GPUs; the last ones."""
    return "\n".join([line[:500] for line in text.splitlines() if _DRIVER.search(line)][-_LINES:])


def modules(text: str) -> str:
    """Of /proc/modules: those of GPUs."""
    return "\n".join(line for line in text.splitlines() if _MODULES.match(f"{line} "))


def words(text: str) -> str:
    """Of the kernel's command line: what is of GPUs, and nothing of disks."""
    wanted = re.compile(r"nvidia|nouveau|iommu|vfio|pci|lockdown|module|modeset|hugepages", re.IGNORECASE)
    return " ".join(word for word in text.split() if wanted.search(word) and "UUID" not in word)


def mounts(text: str) -> str:
    """Of /proc/mounts: what a container gets for its GPUs, shared memory and control groups."""
    return "\n".join(line[:300] for line in text.splitlines() if _MOUNTS.search(line))


def cdi(text: str) -> str:
    """Of a CDI specification: its kind, devices, nodes, and the driver libraries with their version."""
    return "\n".join([line for line in text.splitlines() if _CDI.search(line)][:_LINES])


def nvidia_smi(text: str) -> str:
    """Of ``nvidia-smi -q -x``: all but the clocks that could be set and who computes."""
    return _XML_DROPPED.sub("", text)


def meminfo(text: str) -> str:
    """Total and available memory."""
    return "\n".join(line for line in text.splitlines() if line.startswith(("MemTotal", "MemAvail", "Swap")))


def status(text: str) -> str:
    """Of /proc/self/status: user, groups, capabilities, seccomp."""
    wanted = ("Uid", "Gid", "Groups", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
    return "\n".join(line for line in text.splitlines() if line.startswith(wanted))


def docker_info(text: str) -> str:
    """Of what an engine says of itself: how it starts containers, and nothing that names the machine."""
    found = _object(text)
    if not found:
        return ""
    kept = {key: value for key, value in found.items() if key in _INFO}
    runtimes = found.get("Runtimes")
    kept["Runtimes"] = {
        str(name): {key: one[key] for key in ("path", "runtimeType") if isinstance(one, dict) and key in one}
        for name, one in (runtimes.items() if isinstance(runtimes, dict) else ())
    }
    client = found.get("ClientInfo")
    if isinstance(client, dict):
        plugins = client.get("Plugins")
        kept["ClientInfo"] = {
            **{key: client[key] for key in ("Version", "Context") if key in client},
            "Plugins": [
                {key: one[key] for key in ("Name", "Version", "Err") if key in one}
                for one in (plugins if isinstance(plugins, list) else ())
                if isinstance(one, dict)
            ],
        }
    return json.dumps(kept)


def daemon_json(text: str) -> str:
    """Of /etc/docker/daemon.json: what starts containers. One that cannot be read stays as it is."""
    found = _object(text)
    if not found:
        return text[:2000]
    return json.dumps({key: value for key, value in found.items() if key in _DAEMON})


def client_json(text: str) -> str:
    """Of docker's config.json: its context, and whether it sets proxies. Never what it logs in with."""
    found = _object(text)
    kept: dict[str, Any] = {"currentContext": found.get("currentContext", "")}
    for key in ("proxies", "credHelpers", "credsStore", "auths"):
        kept[key] = bool(found.get(key))
    return json.dumps(kept)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def fields(text: str) -> str:
    """Of modinfo: which module it is, and whether it is signed."""
    wanted = ("filename:", "version:", "license:", "signer:", "vermagic:", "sig_id:", "firmware:")
    return "\n".join(line for line in text.splitlines() if line.startswith(wanted))


def libraries(text: str) -> str:
    """Of the loader's cache: the driver's and CUDA's libraries."""
    wanted = re.compile(r"libcuda\.so|libnvidia-ml\.so|libcudart\.so|libcudnn\.so|libcublas\.so|libnccl\.so")
    return "\n".join([line for line in text.splitlines() if wanted.search(line)][:60])


def installed(text: str) -> str:
    """Of dpkg's list: what is installed, or half so."""
    return "\n".join([line for line in text.splitlines() if line[1:2] in "iFUH"][:400])


Keep = Callable[[str], str]


def whole(text: str) -> str:
    """All of it, to 20 000 characters."""
    return text[:20_000]


def everything(text: str) -> str:
    """All of it."""
    return text
