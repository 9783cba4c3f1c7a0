"""Limits of the host: shared memory, locked memory, disk, file watches, main memory."""

from __future__ import annotations

from tfenv.doctor.evidence import Evidence

from .words import find, yes

_GB = 10**9


def read(of: Evidence) -> dict[str, str]:
    """Sizes in GB and MB as whole numbers, ``memlock`` in kB or ``unlimited``, inotify's numbers."""
    spaces = of.spaces
    limits = of.file("/proc/self/limits")
    memory = find(r"^MemTotal:[ \t]*(\d+) kB", of.file("/proc/meminfo"))
    locked = find(r"^Max locked memory +(\S+)", limits)
    return {
        "shm_mb": str(spaces["shm"].size // 10**6) if "shm" in spaces else "",
        "shm_free_mb": str(spaces["shm"].free // 10**6) if "shm" in spaces else "",
        "docker_free_gb": str(spaces["docker"].free // _GB) if "docker" in spaces else "",
        "root_free_gb": str(spaces["root"].free // _GB) if "root" in spaces else "",
        "home_free_gb": str(spaces["home"].free // _GB) if "home" in spaces else "",
        "tmp_free_mb": str(spaces["tmp"].free // 10**6) if "tmp" in spaces else "",
        "memory_gb": str(int(memory) * 1024 // _GB) if memory else "",
        "memlock_kb": str(int(locked) // 1024) if locked.isdecimal() else "",
        "memlock": locked,
        "infiniband": yes(of.folders.get("/dev/infiniband")),
        "open_files": find(r"^Max open files +(\d+)", limits),
        "watches": of.file("/proc/sys/fs/inotify/max_user_watches").strip(),
        "instances": of.file("/proc/sys/fs/inotify/max_user_instances").strip(),
    }
