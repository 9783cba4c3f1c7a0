"""Every CUDA library that TensorFlow opens: found, and the version that was compiled and declared.

Each one is opened in a clean process of its own: what it finds is compared with what TensorFlow's
own process has loaded by the checks that import TensorFlow.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable

from ..context import Context
from ..cuda_libraries import cudnn_parts, known, wanted_by_default
from ..declared import Declared, Library
from ..distributions import Distribution, asked_for, installed, normalized, version_by_record
from ..loader import Probe, opener, search
from ..places import build_info, site_folders, wheel_library_folders
from ..protocol import NotRunError, Report
from ..versions import agree, major_minor, numbers, text

_SONAME_NUMBERS = 2  # libcudart.so.11.0 is a name, not a version


def check(context: Context, report: Report) -> None:
    """Every CUDA library that TensorFlow opens is found and has the right version."""
    declared, folders = context.declared, wheel_library_folders()
    info = compiled_for(build_info(), installed(site_folders()))
    cuda = declared.compiled_cuda or str(info.get("cuda_version", "")) or declared.cuda
    wanted = declared.libraries or by_build(info)
    if not wanted:
        raise NotRunError("TensorFlow does not say which CUDA it was built for")
    report.facts["compiled_cuda"] = cuda
    for soname in declared.absent:
        report.warning(f"this image has no {soname}, which TensorFlow would open", "it is declared so")
    inspect(declared, cuda, wanted, report, opener(declared, folders), folders)


def compiled_for(info: dict[str, Any], dists: Iterable[Distribution]) -> dict[str, Any]:
    """The build information, or where it names no CUDA (from 2.22 on) what the extra and-cuda asks for."""
    if any(key.startswith(("cuda_version", "cudnn_version")) for key in info):
        return info
    mine = [dist for dist in dists if normalized(dist.name) == "tensorflow"]
    return {**info, **(of_extra(asked_for(mine[0], "and-cuda")) if mine else {})}


def of_extra(extra: dict[str, str]) -> dict[str, str]:
    """Of CUDA and cuDNN major and minor version, as the requirements of the extra name them."""
    found = {}
    for what, pattern in (("cuda", r"nvidia-cuda-runtime-cu\d+"), ("cudnn", r"nvidia-cudnn-cu\d+")):
        versions = [version for name, version in extra.items() if re.fullmatch(pattern, name) and version]
        if len(versions) == 1:
            found[f"{what}_version"] = text(major_minor(versions[0]))
    return found


def by_build(info: dict[str, Any]) -> tuple[Library, ...]:
    """The libraries of an image that declares none, from TensorFlow's own build information."""
    cuda = str(info.get("cuda_version", ""))
    cudnn = numbers(str(info.get("cudnn_version", "")))
    return wanted_by_default(cuda, cudnn[0] if cudnn else 0) if numbers(cuda) else ()


def libraries_of(declared: Declared, info: dict[str, Any]) -> list[Library]:
    """The declared libraries, or those of such a build, with the parts that cuDNN opens itself."""
    return with_parts(declared.libraries or by_build(info))


def with_parts(libraries: Iterable[Library]) -> list[Library]:
    """The libraries, and after them cuDNN's own parts."""
    named = list(libraries)
    sonames = {library.soname for library in named}
    return named + [
        Library(part[3:].split(".so")[0], part)
        for library in named
        if library.name == "cudnn"
        for part in cudnn_parts(_soname_major(library.soname))
        if part not in sonames
    ]


def inspect(
    declared: Declared,
    compiled_cuda: str,
    wanted: Iterable[Library],
    report: Report,
    probe: Probe,
    wheel_folders: Iterable[str] = (),
    installed_files: Callable[[str], "str | None"] = version_by_record,
) -> None:
    """Open each library and compare. ``probe`` takes a name and a soname (or a path)."""
    libraries, folders = with_parts(wanted), list(wheel_folders)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda library: (library, search(library, probe, folders)), libraries))
    report.facts["libraries"] = {}
    for library, found in answers:
        told_by_file(library, found, installed_files)
        report.facts["libraries"][library.soname] = found
        if judge_found(declared, library, found, report):
            judge_version(declared, compiled_cuda, library, found, report)


def told_by_file(library: Library, found: dict[str, Any], recorded: Callable[[str], "str | None"]) -> None:
    """Where only the missing driver keeps a library from telling its version, take its file's.

    It is that of the wheel whose RECORD has the file's hash, or else the one in the file's own name, which
    NVIDIA's packages for Linux give it: libcudart.so.11.8.89.
    """
    row = known(library.name, library.soname)
    path = os.path.realpath(str(found.get("path", "")))
    if row is None or not row.driverless or found.get("error") != row.driverless:
        return
    version = recorded(path)
    if version is None:
        name = os.path.basename(path)
        stem = library.soname.split(".so")[0] + ".so."
        full = name[len(stem) :] if name.startswith(stem) else ""
        version = full if len(numbers(full)) > _SONAME_NUMBERS else ""
    if version:
        found["version"], found["told_by"] = version, "its file: there is no driver to ask"


def judge_found(declared: Declared, library: Library, found: dict[str, Any], report: Report) -> bool:
    """Whether the library could be opened at all; says so if not."""
    if "missing" in found:
        optional = declared.foreign and not getattr(known(library.name), "opened", True)
        (report.warning if optional else report.error)(
            f"{library.soname} cannot be opened",
            str(found["missing"]),
            f"give {found['similar']} that second name: `links` of the CUDA set in matrix.yaml"
            if "similar" in found
            else "install the wheel or package that holds it"
            + (f" ({library.wheel})" if library.wheel else "")
            + ", list its folder in /etc/ld.so.conf.d and run ldconfig",
        )
        return False
    if "unlisted" in found:
        # TensorFlow itself finds it through the RUNPATH of its own libraries (from 2.14 on);
        # what cuDNN and others open in turn is not found that way.
        (report.warning if declared.foreign else report.error)(
            f"{library.soname} is in {os.path.dirname(found.get('path', ''))}, "
            "where the loader does not look",
            str(found["unlisted"]),
            "list that folder in /etc/ld.so.conf.d and run ldconfig",
        )
    return True


def judge_version(
    declared: Declared,
    compiled_cuda: str,
    library: Library,
    found: dict[str, Any],
    report: Report,
) -> None:
    """The library's own version against the locked wheel, the tag, and what was compiled for."""
    row = known(library.name, library.soname)
    loaded = str(found.get("version", ""))
    if not loaded and row is not None and row.silent:
        return
    if not loaded:
        cuda = declared.cuda or compiled_cuda
        fails = not declared.foreign and (row is None or row.tells(cuda))
        (report.error if fails else report.info)(
            f"{library.soname} ({found.get('path', '')}) does not tell its version",
            str(found.get("trouble", "")),
            "it is not the library of that name, or the suite's table of libraries needs a row for it"
            if fails
            else "",
        )
        return
    if row is None or not row.release:
        return
    where = f"{library.soname} ({found.get('path', '')}) says it is {loaded}"
    if library.version and not agree(loaded, library.version):
        report.error(
            f"{where}; {library.wheel or 'the lock'} has {library.version}",
            remedy="another copy of this library is found first: see the check second_cuda",
        )
    if row.name == "cudart":
        _cuda_rule(declared.cuda, compiled_cuda, loaded, where, report)
    if row.name == "nccl" and declared.compiled_nccl_how == "loaded":
        _nccl_rule(declared.compiled_nccl, loaded, where, report)
    if row.name == "cudnn":
        judge_cudnn(declared.cudnn, declared.compiled_cudnn, loaded, where, report)


def _cuda_rule(tag: str, compiled: str, loaded: str, where: str, report: Report) -> None:
    """Equal to the tag; of the compiled major version, and not older than compiled for."""
    if tag and not agree(text(major_minor(loaded)), text(major_minor(tag))):
        report.error(f"{where}; the tag declares CUDA {tag}", remedy="rebuild the image from its lock")
    if not compiled:
        return
    have, need = major_minor(loaded), major_minor(compiled)
    if have[:1] != need[:1] or have < need:
        report.error(
            f"{where}; TensorFlow was compiled for CUDA {compiled}",
            remedy=f"use CUDA {text(need)}, or a newer {need[0]}.x",
        )
    elif have != need:
        report.info(f"{where}; TensorFlow was compiled for CUDA {compiled}, which it serves too")


def _nccl_rule(compiled: str, loaded: str, where: str, report: Report) -> None:
    """Newer ones serve older programs within a major version; patches are free."""
    have, need = major_minor(loaded), major_minor(compiled)
    if need and (have[:1] != need[:1] or have < need):
        report.error(
            f"{where}; TensorFlow was compiled with NCCL {compiled}",
            remedy=f"use NCCL {text(need)} or a newer {need[0]}.x, as TensorFlow's extra and-cuda asks for",
        )


def judge_cudnn(tag: str, compiled: str, loaded: str, where: str, report: Report) -> None:
    """TensorFlow's own rule: the major version equal, the minor one at least; patches are free.

    Anything else it refuses at the first convolution: 'Loaded runtime CuDNN library: ... but
    source was compiled with: ...' (IsSourceCompatibleWithCudnnLibrary in cuda_dnn.cc).
    """
    if tag and not agree(loaded, tag):
        report.error(f"{where}; the tag declares cuDNN {tag}", remedy="rebuild the image from its lock")
    have, need = major_minor(loaded), major_minor(compiled)
    if need and (have[:1] != need[:1] or have < need):
        report.error(
            f"{where}; TensorFlow was compiled with cuDNN {compiled} and refuses this one",
            remedy=f"use cuDNN {text(need)} or a newer {need[0]}.x",
        )


def _soname_major(soname: str) -> int:
    found = numbers(soname.rpartition(".so.")[2])
    return found[0] if found else 0
