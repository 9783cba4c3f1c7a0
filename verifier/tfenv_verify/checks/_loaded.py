"""What the process has really loaded: one file of each CUDA library, the one that the loader finds.

Found is not loaded: LD_LIBRARY_PATH, a RUNPATH or a package that brings its own copy can put
another file into the process than the one that the check ``libraries`` looked at.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable

from ..cuda_libraries import KNOWN
from ..declared import Declared, Library
from ..library_probe import mapped_files
from ..loader import opener, search
from ..places import build_info, wheel_library_folders
from ..protocol import Report
from ..versions import numbers
from .libraries import libraries_of

# The driver's own come from the host, whatever the image declares.
_DRIVER = re.compile(r"lib(cuda|cudadebugger|nvcuvid|nvoptix)\.so|libnvidia-")
_CUDA = re.compile(r"lib(cu|nv|nccl)")
_OTHERS = re.compile(r"lib(curl|cups|curses|nvme)")
# Tools that repair wheels put a hash into the names of the copies that they bring: libx-1a2b3c4d.so
_HASH = re.compile(r"-[0-9a-f]{8}$")


def compare_loaded(declared: Declared, report: Report) -> list[str]:
    """Compare what is mapped into this process now; returns the CUDA libraries among it."""
    files = cuda_files(mapped_files())
    report.facts["mapped_cuda_files"] = files
    folders = wheel_library_folders()
    open_one = opener(declared, folders)
    inspect(
        declared,
        files,
        libraries_of(declared, build_info()),
        lambda library: search(library, open_one, folders),
        report,
    )
    return files


def cuda_files(files: Iterable[str]) -> list[str]:
    """Those that are libraries of CUDA, cuDNN or NCCL, but not the driver's."""
    names = ((path, os.path.basename(path)) for path in files)
    return [
        path
        for path, name in names
        if ".so" in name and _CUDA.match(name) and not _OTHERS.match(name) and not _DRIVER.match(name)
    ]


def family(path: str) -> str:
    """``libcudart`` of ``/x/libcudart.so.12``."""
    return _HASH.sub("", os.path.basename(path).split(".so")[0])


def inspect(
    declared: Declared,
    files: Iterable[str],
    libraries: Iterable[Library],
    find: Callable[[Library], dict[str, Any]],
    report: Report,
) -> None:
    """One file of each family, in a declared folder, and the one that the loader finds.

    Args:
        files: the mapped libraries. libraries: those whose soname is known.
        find: asks the loader in a process of its own.
    """
    loaded: dict[str, list[str]] = {}
    for path in sorted(set(files)):
        loaded.setdefault(family(path), []).append(path)
    sonames = {family(library.soname): library for library in libraries}
    for name, paths in sorted(loaded.items()):
        if len(paths) > 1:
            report.error(
                f"{name} is loaded {len(paths)} times: {' and '.join(paths)}",
                remedy="keep one CUDA source; look at LD_LIBRARY_PATH and LD_PRELOAD",
            )
    _one_cuda([path for paths in loaded.values() for path in paths], report)
    for path in (path for paths in loaded.values() for path in paths):
        _inside(declared, path, report)
    first = {name: paths[0] for name, paths in sorted(loaded.items())}
    wanted = [sonames.get(name) or Library(name, os.path.basename(path)) for name, path in first.items()]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda library: (library, find(library)), wanted))
    for library, found in answers:
        for path in loaded[family(library.soname)]:
            _found(declared, library, path, found, report)


def cuda_majors(path: str) -> set[str]:
    """The major versions of CUDA that have a library of this name; empty if the name does not tell."""
    stem, _, version = os.path.basename(path).partition(".so.")
    have = numbers(version)
    return {
        cuda.split(".")[0]
        for row in KNOWN
        for cuda, soname in row.sonames.items()
        if have
        and soname.split(".so")[0] == _HASH.sub("", stem)
        and numbers(soname.partition(".so.")[2])[:1] == have[:1]
    }


def _one_cuda(paths: list[str], report: Report) -> None:
    """There is a CUDA that has all of these libraries."""
    told = {path: majors for path, majors in ((path, cuda_majors(path)) for path in paths) if majors}
    if told and not set.intersection(*told.values()):
        report.error(
            "libraries of more than one CUDA are loaded",
            "\n".join(f"{path}: CUDA {' or '.join(sorted(majors))}" for path, majors in sorted(told.items())),
            "keep one CUDA source; look at LD_LIBRARY_PATH and for a package with a CUDA of its own",
        )


def _inside(declared: Declared, path: str, report: Report) -> None:
    folders = [os.path.realpath(folder) for folder in declared.cuda_folders]
    if folders and not any(os.path.realpath(path).startswith(folder + os.sep) for folder in folders):
        report.error(
            f"{path} is loaded; the image's CUDA is in {' and '.join(folders)}",
            remedy="look at LD_LIBRARY_PATH and LD_PRELOAD, and for a package with a CUDA of its own",
        )


def _found(declared: Declared, library: Library, path: str, found: dict[str, Any], report: Report) -> None:
    if "missing" in found:
        (report.warning if declared.foreign else report.error)(
            f"{path} is loaded, but the loader itself finds no {library.soname}",
            str(found["missing"]),
            "list its folder in /etc/ld.so.conf.d and run ldconfig",
        )
        return
    real = os.path.realpath(str(found.get("path", "")))
    if real != os.path.realpath(path):
        (report.warning if declared.foreign else report.error)(
            f"{path} is loaded; the loader itself finds {found.get('path') or 'no file'}",
            remedy="look at LD_LIBRARY_PATH and LD_PRELOAD: run without them",
        )
