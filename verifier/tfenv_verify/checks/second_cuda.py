"""No second CUDA: no library of the CUDA family in two places."""

from __future__ import annotations

import glob
import os
import re
import subprocess
from typing import Callable, Iterable

from ..context import Context
from ..places import wheel_library_folders
from ..protocol import Report

_FAMILY = re.compile(
    r"^lib(cudart|cublas|cublasLt|cufft|curand|cusolver|cusparse|cudnn|nccl|nvrtc|nvJitLink|cupti)"
    r"\.so(\.\d+)*$"
)
_TOOLKITS = ("/usr/local/cuda*", "/opt/cuda*")


def check(_context: Context, report: Report) -> None:
    """No CUDA library is in the image twice, so that it cannot matter which one is found."""
    folders = wheel_library_folders() + toolkit_folders()
    compare(listed_by_loader(_ldconfig) + in_folders(folders), report)


def compare(candidates: Iterable[str], report: Report) -> None:
    """One error for each family with more than one real file; links are followed first."""
    places: dict[str, dict[tuple[int, int], str]] = {}
    for path in candidates:
        match = _FAMILY.match(os.path.basename(path))
        if match and os.path.isfile(path):
            real = os.path.realpath(path)
            status = os.stat(real)
            key = (status.st_dev, status.st_ino)
            places.setdefault(match.group(1), {}).setdefault(key, real)
    wasted = 0
    for family, found in sorted(places.items()):
        if len(found) > 1:
            paths = sorted(found.values())
            sizes = {path: os.path.getsize(path) for path in paths}
            wasted += sum(sizes.values()) - max(sizes.values())
            report.error(
                f"lib{family} is in the image {len(paths)} times: {' and '.join(paths)}",
                "\n".join(f"{path}: {size} bytes" for path, size in sizes.items()),
                "keep one CUDA source: the base image's or NVIDIA's wheels, not both",
            )
    report.facts["families"] = {family: sorted(found.values()) for family, found in sorted(places.items())}
    report.facts["wasted_bytes"] = wasted


def in_folders(folders: Iterable[str]) -> list[str]:
    """The shared libraries in these folders."""
    return [
        os.path.join(folder, name)
        for folder in folders
        if os.path.isdir(folder)
        for name in sorted(os.listdir(folder))
        if ".so" in name
    ]


def toolkit_folders(patterns: Iterable[str] = _TOOLKITS) -> list[str]:
    """The library folders of CUDA toolkits; not their ``stubs``, which nothing may load."""
    found: list[str] = []
    for pattern in patterns:
        for root in sorted(glob.glob(pattern)):
            for part in ("lib64", "lib", "targets/*/lib", "extras/CUPTI/lib64"):
                found += sorted(glob.glob(os.path.join(root, part)))
    return found


def listed_by_loader(ldconfig: Callable[[], str]) -> list[str]:
    """The paths that the loader's cache holds."""
    return [line.rpartition(" => ")[2] for line in ldconfig().splitlines() if " => " in line]


def _ldconfig() -> str:
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        if os.access(program, os.X_OK):
            done = subprocess.run(
                [program, "-p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
            )
            return done.stdout.decode("utf-8", "replace")
    return ""
