"""Open one library by its soname in this process, ask its version, say which file it was."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable

from .cuda_libraries import CallError, known


def probe(
    name: str,
    soname: str,
    load: Callable[[str], Any] = ctypes.CDLL,
    maps: Callable[[], list[str]] | None = None,
) -> dict[str, Any]:
    """One library's ``path``, ``version`` and ``trouble`` (why there is none), or ``missing``.

    Args:
        soname: ``libcudart.so.12``, or a path where the loader itself does not find it.
    """
    try:
        library = load(soname)
    except OSError as error:
        return {"missing": str(error)}
    found: dict[str, Any] = {
        "path": mapped_path(os.path.basename(soname), (maps or mapped_files)()),
        "version": "",
        "trouble": "",
    }
    row = known(name, os.path.basename(soname))
    if row is None:
        found["trouble"] = "no version call is known for it"
        return found
    try:
        found["version"] = ".".join(str(part) for part in row.read(library))
    except AttributeError:
        found["trouble"] = f"it has no {row.call}"
    except CallError as error:
        found["trouble"], found["error"] = str(error), error.status
    except OSError as error:
        found["trouble"] = str(error)
    return found


def mapped_files() -> list[str]:
    """Every file that is mapped into this process, each once."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as stream:
        paths = (line.rstrip("\n").split(None, 5)[5:] for line in stream)
        return sorted({path[0] for path in paths if path and path[0].startswith("/")})


def mapped_path(soname: str, files: list[str]) -> str:
    """The mapped file that a soname resolved to.

    The kernel names the file, not the link: ``libcudart.so.12`` can be ``libcudart.so.12.2.140``.
    """
    named = [path for path in files if os.path.basename(path) == soname]
    longer = [path for path in files if os.path.basename(path).startswith(soname + ".")]
    stem = soname.split(".so")[0] + ".so"
    similar = [path for path in files if os.path.basename(path).startswith(stem)]
    return (named + longer + similar + [""])[0]
