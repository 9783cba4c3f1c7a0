"""Ask the dynamic loader for a library, in a clean process: which file, and which version.

Clean: a library that another has already loaded, or that LD_LIBRARY_PATH points to, would be found
whatever the loader's configuration says.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Iterable

from .declared import Declared, Library
from .runner import run_child, signal_name, suite_command

_SECONDS_EACH = 60.0
Probe = Callable[[str, str], "dict[str, Any]"]


def opener(declared: Declared, folders: Iterable[str], library_path: str | None = None) -> Probe:
    """How libraries of this image are opened: in a clean process.

    An image that declares nothing promises nothing of the loader's configuration. There they are opened
    as TensorFlow would: by the image's own LD_LIBRARY_PATH, then by the RUNPATH of TensorFlow's own
    libraries, which names the folders of NVIDIA's wheels, and then as the loader is configured.

    Args:
        folders: those of NVIDIA's wheels. library_path: LD_LIBRARY_PATH; None for that of this process.
    """
    if not declared.foreign:
        return open_in_clean_process
    wheels = list(folders)
    path = os.environ.get("LD_LIBRARY_PATH", "") if library_path is None else library_path

    def probe(name: str, soname: str) -> dict[str, Any]:
        there = [os.path.join(folder, soname) for folder in path.split(":") if folder]
        if os.sep not in soname and not any(map(os.path.exists, there)):
            for file in (os.path.join(folder, soname) for folder in wheels):
                if os.path.exists(file):
                    return open_in_clean_process(name, file, path)
        return open_in_clean_process(name, soname, path)

    return probe


def open_in_clean_process(name: str, soname: str, library_path: str = "") -> dict[str, Any]:
    """Open one library in a process with an empty environment; a crash counts as missing.

    Args:
        library_path: LD_LIBRARY_PATH, which is all that the environment has then.
    """
    ended = run_child(
        suite_command("--probe-library", name, soname, isolated=True),
        _SECONDS_EACH,
        env={"LD_LIBRARY_PATH": library_path} if library_path else {},
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


def search(library: Library, probe: Probe, wheel_folders: Iterable[str]) -> dict[str, Any]:
    """What ``probe`` finds by soname, or else in a wheel's folder, with ``unlisted`` as the reason.

    Where it is missing under that name, ``similar`` is a file of the same library with another one.
    """
    found = probe(library.name, library.soname)
    if "missing" in found:
        folders = list(wheel_folders)
        for path in (os.path.join(folder, library.soname) for folder in folders):
            if os.path.exists(path):
                return dict(probe(library.name, path), unlisted=found["missing"])
        stem = library.soname.split(".so")[0] + ".so"
        for folder in folders:
            names = [name for name in sorted(os.listdir(folder)) if name.startswith(stem)]
            if names:
                return dict(found, similar=os.path.join(folder, names[0]))
    return found
