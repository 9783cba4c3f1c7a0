"""Device nodes: are they there, and may this user open them?"""

from __future__ import annotations

import re

from tfenv.doctor.evidence import Evidence

from .words import listed, yes


def read(of: Evidence) -> dict[str, str]:
    """``nodes_gpu``, ``node_ctl``, ``node_uvm``, ``nodes_closed``, ``proc_gpus``, ``dxg``, ``libcuda``."""
    numbered = [path for path in of.nodes if re.fullmatch(r"/dev/nvidia\d+", path)]
    needed = [
        *numbered,
        *(path for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg") if path in of.nodes),
    ]
    closed = [path for path in needed if not of.nodes[path].usable]
    known = [path for path in of.files if path.startswith("/proc/driver/nvidia/gpus/")]
    groups = {of.nodes[path].group for path in closed}
    return {
        "nodes_gpu": str(len(numbered)),
        "node_ctl": yes("/dev/nvidiactl" in of.nodes),
        "node_uvm": yes("/dev/nvidia-uvm" in of.nodes),
        "nodes_closed": listed(closed),
        "nodes_group": listed([_GROUPS.get(group, str(group)) for group in sorted(groups)]),
        "nodes_mode": listed(sorted({of.nodes[path].mode for path in closed})),
        "proc_gpus": str(len(known)) if known else "",
        "fewer_nodes": yes(len(numbered) < len(known)),
        "dxg": yes("/dev/dxg" in of.nodes),
        "libcuda": yes(_libcuda(of)) if of.links or of.command("ldconfig -p").ok else "",
        "wsl_libcuda": yes("/usr/lib/wsl/lib/libcuda.so.1" in of.links),
        "linux_libcuda": yes(_in_linux(of)),
        "ldconfig_wsl": yes("/usr/lib/wsl/lib" in of.command("ldconfig -p").out),
    }


_GROUPS = {0: "root", 44: "video", 109: "render"}


def _libcuda(of: Evidence) -> bool:
    return any("/libcuda.so" in path for path in of.links) or "libcuda.so.1" in of.command("ldconfig -p").out


def _in_linux(of: Evidence) -> bool:
    """A driver library for Linux itself, which has no place under WSL 2."""
    ends = [
        end
        for path, end in of.links.items()
        if "/libcuda.so" in path and "wsl" not in path and "wsl" not in end
    ]
    return any(re.search(r"libcuda\.so\.\d{3}\.", end) for end in ends)
