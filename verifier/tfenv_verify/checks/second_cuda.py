"""No second CUDA: no library of the CUDA family in two places."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import subprocess
from typing import Any, Callable, Iterable

from ..context import Context
from ..declared import Declared
from ..loader import open_in_clean_process
from ..places import build_info, wheel_library_folders
from ..protocol import Report
from .libraries import libraries_of

_FAMILY = re.compile(
    r"^lib(cudart|cublas|cublasLt|cufft|curand|cusolver|cusparse|cudnn|nccl|nvrtc|nvJitLink|cupti"
    r"|nvshmem_host)"
    r"\.so(\.\d+)*$"
)
_TOOLKITS = ("/usr/local/cuda*", "/opt/cuda*")


_NOTHING = Declared()


def check(context: Context, report: Report) -> None:
    """No CUDA library is in the image twice, so that it cannot matter which one is found."""
    folders = wheel_library_folders() + toolkit_folders()
    # Which of two is loaded is judged by others; an image that declares nothing promises not just one.
    say = report.warning if context.declared.foreign else report.error
    compare(listed_by_loader(_ldconfig) + in_folders(folders), report, context.declared, say=say)


def compare(
    candidates: Iterable[str],
    report: Report,
    declared: Declared = _NOTHING,
    probe: Callable[[str, str], "dict[str, Any]"] = open_in_clean_process,
    say: Callable[..., None] | None = None,
) -> None:
    """One error for each family with more than one real file; links are followed first.

    Args:
        declared: what it says is unused is not counted, once ``probe`` (name, soname) finds another.
        say: how it is said; None for an error.
    """
    places: dict[str, dict[tuple[int, int], str]] = {}
    for path in candidates:
        match = _FAMILY.match(os.path.basename(path))
        if match and os.path.isfile(path):
            real = os.path.realpath(path)
            status = os.stat(real)
            key = (status.st_dev, status.st_ino)
            places.setdefault(match.group(1), {}).setdefault(key, real)
    set_aside(declared, places, report, probe)
    outside(declared, places, report)
    wasted = 0
    for family, found in sorted(places.items()):
        if len(found) > 1:
            paths = sorted(found.values())
            sizes = {path: os.path.getsize(path) for path in paths}
            wasted += sum(sizes.values()) - max(sizes.values())
            (say or report.error)(
                f"lib{family} is in the image {len(paths)} times: {' and '.join(paths)}",
                "\n".join(f"{path}: {size} bytes" for path, size in sizes.items()),
                "keep one CUDA source: the base image's or NVIDIA's wheels, not both",
            )
    report.facts["families"] = {family: sorted(found.values()) for family, found in sorted(places.items())}
    report.facts["wasted_bytes"] = wasted


def set_aside(
    declared: Declared,
    places: dict[str, dict[tuple[int, int], str]],
    report: Report,
    probe: Callable[[str, str], "dict[str, Any]"],
) -> None:
    """Take out of ``places`` what is declared as unused, if the loader really takes another file."""
    sonames = {
        library.soname.split(".so")[0][3:]: library for library in libraries_of(declared, build_info())
    }
    for family, found in places.items():
        unused = {
            key: path
            for key, path in found.items()
            if any(fnmatch.fnmatchcase(path, pattern) for pattern in declared.unused)
        }
        if not unused:
            continue
        library = sonames.get(family)
        taken = str(probe(library.name, library.soname).get("path", "")) if library else ""
        if not taken or os.path.realpath(taken) in unused.values():
            report.error(
                f"{' and '.join(sorted(unused.values()))} is declared as unused, "
                f"but the loader finds {'it' if taken else 'no other'}",
                remedy="list the folder of the right one first in /etc/ld.so.conf.d and run ldconfig",
            )
            continue
        report.facts.setdefault("unused", []).extend(sorted(unused.values()))
        for key in unused:
            del found[key]


def outside(declared: Declared, places: dict[str, dict[tuple[int, int], str]], report: Report) -> None:
    """Each library is in one of the folders that are declared as those of CUDA."""
    folders = [os.path.realpath(folder) + os.sep for folder in declared.cuda_folders]
    paths = sorted(path for found in places.values() for path in found.values())
    strangers = [path for path in paths if not any(path.startswith(folder) for folder in folders)]
    if folders and strangers:
        report.error(
            f"{len(strangers)} CUDA libraries are not in {' or '.join(declared.cuda_folders)}",
            "\n".join(strangers),
            "keep one CUDA source: the base image's or NVIDIA's wheels, not both",
        )


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
