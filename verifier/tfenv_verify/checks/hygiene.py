"""Nothing in the image that nobody loads, and nothing of the machine that built it."""

from __future__ import annotations

import fnmatch
import glob
import os
import shutil
from typing import Callable, Iterable, Mapping

from ..context import Context
from ..places import python_folders, site_folders, walk
from ..protocol import Report, shorten

_COMPILERS = ("gcc", "cc", "g++", "c++", "clang", "nvcc")
_OURS = "/opt/tfenv"
_APT_LISTS = "/var/lib/apt/lists"
_CACHES = ("/root/.cache/pip", "/root/.cache/uv", "/home/*/.cache/pip", "/home/*/.cache/uv")
_APT_CONF = ("/etc/apt/apt.conf", "/etc/apt/apt.conf.d/*")
_PIP_CONF = (
    "/etc/pip.conf",
    "/etc/xdg/pip/pip.conf",
    "/root/.config/pip/pip.conf",
    "/root/.pip/pip.conf",
    "/home/*/.config/pip/pip.conf",
    "/home/*/.pip/pip.conf",
    "/opt/tfenv/venv/pip.conf",
)


def check(context: Context, report: Report) -> None:
    """No compiler, package lists, caches, headers, and nothing of the building machine."""
    declared = context.declared
    # A foreign image promised none of this: there it is worth knowing, not wrong.
    say = report.info if declared.foreign else report.error
    if "**" not in declared.keep:  # all is kept on purpose: an image to develop in
        compilers(shutil.which, say)
    package_lists(_APT_LISTS, say)
    caches(_CACHES, say)
    development_files([*site_folders(), *_existing(_OURS)], declared.keep, say, report)
    leftovers(os.environ, _APT_CONF, _PIP_CONF, say)
    report.facts["python_folders"] = python_folders()


def compilers(which: Callable[[str], "str | None"], say: Callable[..., None]) -> None:
    """No compiler on PATH."""
    found = [path for path in map(which, _COMPILERS) if path]
    if found:
        say("a compiler is in the image", "\n".join(found), "remove it in the step that added it")


def package_lists(folder: str, say: Callable[..., None]) -> None:
    """No lists of apt, tens of MB that are stale on the day after."""
    found = [os.path.join(where, name) for where, _, names in walk(folder) for name in names]
    found = [path for path in found if os.path.basename(path) != "lock"]
    if found:
        say(
            f"{len(found)} files of apt's lists are in the image",
            shorten(found),
            f"rm -rf {folder}/* in the step that ran apt-get update",
        )


def caches(patterns: Iterable[str], say: Callable[..., None]) -> None:
    """No cache of pip or uv."""
    found = [path for path in _globbed(patterns) if os.path.isdir(path) and os.listdir(path)]
    if found:
        say(
            "a cache of pip or uv is in the image",
            "\n".join(found),
            "mount the cache in the build step instead: RUN --mount=type=cache",
        )


def development_files(
    folders: Iterable[str], keep: Iterable[str], say: Callable[..., None], report: Report
) -> None:
    """No headers and static libraries, but for what matches a ``keep`` glob."""
    tops, globs = sorted({os.path.realpath(folder) for folder in folders}), list(keep)
    found: set[str] = set()
    kept = 0
    for top in tops:
        for folder, _, names in walk(top):
            for name in names:
                if not name.endswith((".h", ".hpp", ".cuh", ".a", ".pxd", ".pyx")):
                    continue
                path = os.path.join(folder, name)
                if _kept(path, tops, globs):
                    kept += 1
                else:
                    found.add(path)
    report.facts["development_files"], report.facts["kept_on_purpose"] = len(found), kept
    if found:
        say(
            f"{len(found)} headers and static libraries are in the image; nothing loads them",
            shorten(sorted(found)),
            "add a trim rule to the row in matrix.yaml, or a keep rule that says why",
        )


def leftovers(
    environ: Mapping[str, str],
    apt_conf: Iterable[str],
    pip_conf: Iterable[str],
    say: Callable[..., None],
) -> None:
    """No proxy, no private index: they would leak, and fail wherever the image runs next.

    Only names and files are said, never values: a proxy's address can hold a password.
    """
    proxies = sorted(name for name in environ if name.lower().endswith("_proxy"))
    proxies = [name for name in proxies if name.lower() != "no_proxy" and environ[name]]
    if proxies:
        say(
            "proxy variables are set in the image or by docker run",
            "\n".join(proxies),
            "pass proxies as build secrets; look at ~/.docker/config.json for those of docker run",
        )
    for patterns, words, what in (
        (apt_conf, ("proxy",), "apt is configured with a proxy"),
        (pip_conf, ("index-url", "proxy", "trusted-host"), "pip is configured with an index"),
    ):
        found = [path for path in _globbed(patterns) if _mentions(path, words)]
        if found:
            say(what, "\n".join(found), "remove the file; pass it as a build secret")


def _kept(path: str, tops: Iterable[str], globs: Iterable[str]) -> bool:
    relative = [path[len(top) + 1 :] for top in tops if path.startswith(top + os.sep)]
    return any(fnmatch.fnmatchcase(name, pattern) for name in relative for pattern in globs)


def _mentions(path: str, words: Iterable[str]) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = [line.split("#")[0].split("//")[0].lower() for line in stream]
    except OSError:
        return False
    return any(word in line for line in lines for word in words)


def _globbed(patterns: Iterable[str]) -> list[str]:
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]


def _existing(folder: str) -> list[str]:
    return [folder] if os.path.isdir(folder) else []
