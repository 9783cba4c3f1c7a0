"""Whether the libraries of the driver that are found are those of the host."""

from __future__ import annotations

import re
from typing import Optional

from .finding import Facts, Finding, count, cuda, found, origin


def baked_in_driver(of: Facts) -> Optional[Finding]:
    """The image holds driver libraries of another version than the host's module."""
    error = (of["driver"].get("nvml") or {}).get("error")
    host = of["module"] or of.get("host", {}).get("driver", "")
    foreign = [one for one in of["libraries"] if origin(one, of) == "image"]
    other = sorted({one["version"] for one in foreign if one["version"] and host and one["version"] != host})
    if not other or (count(of) and error in (0, None)):
        return None
    if compat_shadows(of):
        return None
    return found(
        "broken",
        f"the image holds libraries of NVIDIA driver {', '.join(other)}, and the host runs {host}",
        "Packages (libnvidia-..., nvidia-driver-..., nvidia-opencl-dev) put them into the "
        "image, and they win over those "
        f"of the host: {', '.join(one['end'] for one in foreign if one['version'] in other)[:300]}. "
        "'Driver/library version mismatch' in the container, while nvidia-smi works on the host.",
        "remove the driver's packages from the image: libnvidia-* and nvidia-driver-* have no place in it",
        "https://github.com/k4yt3x/video2x/issues/1226",
    )


def host_mismatch(of: Facts) -> Optional[Finding]:
    """The injected libraries are not of the module that runs: the host itself is in between."""
    error = (of["driver"].get("nvml") or {}).get("error")
    ours = sorted({one["version"] for one in of["libraries"] if origin(one, of) == "host" and one["version"]})
    wrong = [version for version in ours if of["module"] and version != of["module"]]
    if not wrong or (error != 18 and count(of)) or baked_in_driver(of):
        return None
    return found(
        "broken",
        f"the host's driver was updated: its libraries are {', '.join(wrong)}, its module "
        f"still {of['module']}",
        "nvidia-smi fails on the host too: the old kernel module is loaded.",
        "reboot the host; nothing in the image is to be changed",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/394",
    )


def compat_shadows(of: Facts) -> Optional[Finding]:
    """A forward-compatibility libcuda is loaded, and does not work."""
    loaded = [path for path in of["driver"].get("files", ()) if "compat" in path and "libcuda" in path]
    error = cuda(of).get("error")
    if not loaded or error in (0, None):
        return None
    version = re.search(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$", loaded[0])
    host = of["module"] or of.get("host", {}).get("driver", "")
    named = version.group(1) if version else "of another version"
    return found(
        "broken",
        f"libcuda {named} of the package cuda-compat hides the host's driver{f', {host}' if host else ''}",
        f"{loaded[0]} is loaded in the place of the driver's own library, and gives error "
        f"{error}: forward compatibility "
        "is for data-centre GPUs, and for drivers that are older than it.",
        "remove cuda-compat from the image (or its folder from LD_LIBRARY_PATH and "
        "/etc/ld.so.conf.d), or update the driver",
        "https://github.com/tensorflow/tensorflow/issues/48722",
    )


def stub(of: Facts) -> Optional[Finding]:
    """CUDA's stub library."""
    if cuda(of).get("error") != 34 and "stubs" not in of["env"].get("LD_LIBRARY_PATH", ""):
        return None
    if count(of):
        return None
    return found(
        "broken",
        "programs find CUDA's stub in the place of the driver: libcuda that does nothing",
        "The folder .../stubs is on LD_LIBRARY_PATH. It is for linking alone.",
        "take .../stubs out of LD_LIBRARY_PATH",
        "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html",
    )


def driver_hangs(of: Facts) -> Optional[Finding]:
    """CUDA does not answer, or ends the program."""
    if of["driver"].get("hangs"):
        how = "does not answer within 30 seconds"
    elif "crashed" in of["driver"]:
        how = f"ended the program that asked it (status {of['driver']['crashed']})"
    else:
        return None
    return found(
        "broken",
        f"the driver {how}",
        "A GPU that fell off the bus, or a driver that is broken.",
        "on the host: nvidia-smi, sudo dmesg | grep -i xid; reboot",
        "https://docs.nvidia.com/deploy/xid-errors/index.html",
    )
