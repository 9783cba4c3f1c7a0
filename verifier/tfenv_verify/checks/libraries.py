"""Every CUDA library that TensorFlow opens: found, and the version that was compiled and declared.

Each one is opened in a clean process of its own with an empty environment: a library that another
has already loaded, or LD_LIBRARY_PATH points to, would be found whatever the loader knows.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable

from ..context import Context
from ..cuda_libraries import cudnn_parts, known, wanted_by_default
from ..declared import Declared, Library
from ..places import build_info, wheel_library_folders
from ..protocol import NotRunError, Report
from ..runner import run_child, signal_name, suite_command
from ..versions import agree, major_minor, numbers, text

_SECONDS_EACH = 60.0
Probe = Callable[[str, str], "dict[str, Any]"]


def check(context: Context, report: Report) -> None:
    """Every CUDA library that TensorFlow opens is found and has the right version."""
    declared, info = context.declared, build_info()
    cuda = declared.compiled_cuda or str(info.get("cuda_version", "")) or declared.cuda
    wanted = declared.libraries or by_build(info)
    if not wanted:
        raise NotRunError("TensorFlow does not say which CUDA it was built for")
    report.facts["compiled_cuda"] = cuda
    inspect(declared, cuda, wanted, report, open_in_clean_process, wheel_library_folders())


def by_build(info: dict[str, Any]) -> tuple[Library, ...]:
    """The libraries of an image that declares none, from TensorFlow's own build information."""
    cuda = str(info.get("cuda_version", ""))
    cudnn = numbers(str(info.get("cudnn_version", "")))
    return wanted_by_default(cuda, cudnn[0] if cudnn else 0) if numbers(cuda) else ()


def inspect(
    declared: Declared,
    compiled_cuda: str,
    wanted: Iterable[Library],
    report: Report,
    probe: Probe,
    wheel_folders: Iterable[str] = (),
) -> None:
    """Open each library and compare. ``probe`` takes a name and a soname (or a path)."""
    libraries = list(wanted)
    parts = [
        Library("cudnn part", part)
        for library in libraries
        if library.name == "cudnn"
        for part in cudnn_parts(_soname_major(library.soname))
    ]
    folders = list(wheel_folders)

    def find(library: Library) -> tuple[Library, dict[str, Any]]:
        found = probe(library.name, library.soname)
        if "missing" in found:
            for path in (os.path.join(folder, library.soname) for folder in folders):
                if os.path.exists(path):
                    found = dict(probe(library.name, path), unlisted=found["missing"])
                    break
        return library, found

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(find, libraries + parts))
    report.facts["libraries"] = {}
    for library, found in results:
        report.facts["libraries"][library.soname] = found
        if judge_found(declared, library, found, report) and library.name != "cudnn part":
            judge_version(declared, compiled_cuda, library, found, report)


def judge_found(declared: Declared, library: Library, found: dict[str, Any], report: Report) -> bool:
    """Whether the library could be opened at all; says so if not."""
    if "missing" in found:
        optional = declared.foreign and not getattr(known(library.name), "opened", True)
        (report.warning if optional else report.error)(
            f"{library.soname} cannot be opened",
            str(found["missing"]),
            "install the wheel or package that holds it"
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
    if not loaded:
        report.info(f"{library.soname} does not tell its version", str(found.get("trouble", "")))
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
    if row.name == "cudnn":
        _cudnn_rule(declared.cudnn, declared.compiled_cudnn, loaded, where, report)


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


def _cudnn_rule(tag: str, compiled: str, loaded: str, where: str, report: Report) -> None:
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


def open_in_clean_process(name: str, soname: str) -> dict[str, Any]:
    """Open one library in a process with an empty environment; a crash counts as missing."""
    ended = run_child(
        suite_command("--probe-library", name, soname, isolated=True),
        _SECONDS_EACH,
        env={},
        own_group=False,
    )
    try:
        found = json.loads(ended.result.decode("utf-8"))
        if isinstance(found, dict) and ended.returncode == 0:
            return found
    except ValueError:
        pass
    if ended.timed_out:
        return {"missing": f"opening it had not ended after {ended.seconds:.0f} s"}
    how = (
        f"killed by {signal_name(-ended.returncode)}"
        if ended.returncode < 0
        else f"exit code {ended.returncode}"
    )
    return {"missing": f"opening it ended the process ({how}): {ended.tail}"}


def _soname_major(soname: str) -> int:
    found = numbers(soname.rpartition(".so.")[2])
    return found[0] if found else 0
