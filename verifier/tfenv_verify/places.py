"""Where things are in an image: Python's folders, TensorFlow without importing it, scratch space."""

from __future__ import annotations

import glob
import os
import runpy
import sys
import tempfile
from typing import Any, Iterable, Iterator


def python_folders(path: Iterable[str] | None = None) -> list[str]:
    """The folders of ``sys.path``, resolved, each once, without the suite itself."""
    suite = os.path.realpath(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found: list[str] = []
    for entry in sys.path if path is None else path:
        folder = os.path.realpath(entry or ".")
        if os.path.isdir(folder) and folder != suite and folder not in found:
            found.append(folder)
    return found


def site_folders(path: Iterable[str] | None = None) -> list[str]:
    """Those of ``python_folders`` in which distributions are installed."""
    return [
        folder
        for folder in python_folders(path)
        if any(name.endswith(".dist-info") for name in os.listdir(folder))
    ]


def wheel_library_folders(path: Iterable[str] | None = None) -> list[str]:
    """The ``nvidia/<library>/lib`` folders of NVIDIA's wheels, resolved, each once."""
    found: list[str] = []
    for folder in python_folders(path):
        nvidia = os.path.join(folder, "nvidia")
        for name in sorted(os.listdir(nvidia)) if os.path.isdir(nvidia) else ():
            library = os.path.realpath(os.path.join(nvidia, name, "lib"))
            if os.path.isdir(library) and library not in found:
                found.append(library)
    return found


def build_info(path: Iterable[str] | None = None) -> dict[str, Any]:
    """TensorFlow's own build information, read without importing TensorFlow (seconds).

    Empty if there is none; releases from 2.22 on no longer name CUDA in it.
    """
    for folder in python_folders(path):
        source = os.path.join(folder, "tensorflow", "python", "platform", "build_info.py")
        if os.path.isfile(source):
            return dict(runpy.run_path(source).get("build_info", {}))
    return {}


def tensorflow_libraries(path: Iterable[str] | None = None) -> list[str]:
    """The files that hold TensorFlow's own code (before 2.12: the last one all of it)."""
    patterns = (
        "libtensorflow_cc.so*",
        "libtensorflow_framework.so*",
        "python/_pywrap_tensorflow_internal.so",
    )
    for folder in python_folders(path):
        top = os.path.join(glob.escape(folder), "tensorflow")
        found = [name for pattern in patterns for name in sorted(glob.glob(os.path.join(top, pattern)))]
        if found:
            return sorted({os.path.realpath(name) for name in found})
    return []


def walk(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """``os.walk`` in a fixed order, without following links."""
    for folder, folders, files in os.walk(top):
        folders.sort()
        yield folder, folders, sorted(files)


def scratch() -> str:
    """A folder where temporary files can be made, also when the root is read-only.

    Raises:
        OSError: there is none.
    """
    try:
        return tempfile.gettempdir()
    except OSError:
        for folder in ("/dev/shm", os.path.expanduser("~")):
            if writable(folder):
                return folder
        raise


def writable(folder: str) -> bool:
    """Whether a file can be made there. Made and gone: access(2) errs for root and on /proc."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
