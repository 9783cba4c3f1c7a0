"""Calls uv: what it would install, as it says in a pylock document."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tfenv.errors import NotReadyError, TfenvError, UsageError
from tfenv.index import IndexSettings, redact

_FINDING = threading.Lock()
Run = Callable[..., "subprocess.CompletedProcess[str]"]

# The newest C library that `--python-platform` of uv 0.9 to 0.13 knows; what runs there runs on newer ones.
_NEWEST_GLIBC = 40

# What uv says when the network, not the request, is the problem.
_NETWORK_SIGNS = (
    "error sending request",
    "dns error",
    "tcp connect error",
    "Connection refused",
    "operation timed out",
    "Network connectivity is disabled",
    "invalid peer certificate",
)


def uv_binary(env: Mapping[str, str] | None = None) -> str:
    """The uv to call: $TFENV_UV, or the one that the ``uv`` package brings."""
    env = os.environ if env is None else env
    if env.get("TFENV_UV"):
        return env["TFENV_UV"]
    from uv import find_uv_bin

    # It reads sysconfig, whose first use is not safe in threads: https://github.com/python/cpython/issues/92452
    with _FINDING:
        return find_uv_bin()


def uv_version(uv: str, run: Run = subprocess.run) -> str:
    """The version of that uv, e.g. ``0.9.1``."""
    done = _call(run, [uv, "--version"], "")
    match = re.match(r"uv (\d\S*)", done.stdout)
    if done.returncode or not match:
        raise NotReadyError(f"{uv} is no uv", remedy="unset TFENV_UV, or point it to a uv binary")
    return match[1]


def platform_for(glibc: str) -> str:
    """uv's name of a platform with this C library: ``2.36`` -> ``x86_64-manylinux_2_36``."""
    major, minor = glibc.split(".")
    return f"x86_64-manylinux_{major}_{min(int(minor), _NEWEST_GLIBC)}"


def compile_pylock(
    requirements: Iterable[str],
    *,
    python: str,
    platform: str,
    options: Sequence[str],
    overrides: Sequence[str] = (),
    constraints: Sequence[str] = (),
    index: IndexSettings,
    uv: str,
    env: Mapping[str, str],
    run: Run = subprocess.run,
) -> dict[str, Any]:
    """What ``uv pip compile --format pylock.toml`` answers, parsed; only wheels are considered.

    Args:
        constraints: what holds for packages that something else asks for, e.g. ``numpy==1.26.4``.
        env: the user's environment, of which ``index`` passes on what says how an index is reached.
    """
    with tempfile.TemporaryDirectory(prefix="tfenv-uv-") as folder:
        command = [uv, "pip", "compile", "-", "--format", "pylock.toml", "--no-header", "--quiet"]
        command += ["--python", sys.executable, "--python-version", python]
        command += ["--python-platform", platform, "--only-binary", ":all:"]
        # uv's own defaults, said aloud: the user's uv.toml may say something else.
        command += ["--resolution", "highest", "--prerelease", "if-necessary-or-explicit", *options]
        for option, lines in (("override", overrides), ("constraint", constraints)):
            if lines:
                file = Path(folder, f"{option}s.txt")
                file.write_text("\n".join(lines) + "\n", "utf-8")
                command += [f"--{option}", str(file)]
        command += index.uv_args()
        # In an empty folder, so that no pyproject.toml of the user's project changes the result.
        done = _call(
            run,
            command,
            "\n".join(requirements) + "\n",
            cwd=folder,
            env={**index.environment(env), "NO_COLOR": "1"},
        )
    if done.returncode:
        raise failure(done.stderr)
    return _toml(done.stdout)


def wheel_urls(document: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """All URLs in a pylock document, by sha256."""
    found: dict[str, tuple[str, ...]] = {}
    for package in document.get("packages", []):
        for entry in (*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])):
            sha256, url = entry.get("hashes", {}).get("sha256", ""), url_of(entry)
            if sha256 and url not in found.get(sha256, ()):
                found[sha256] = (*found.get(sha256, ()), url)
    return found


def url_of(entry: Mapping[str, Any]) -> str:
    """The URL of a wheel in a pylock document."""
    if "url" in entry:
        return str(entry["url"])
    return Path(entry["path"]).absolute().as_uri()


def _toml(text: str) -> dict[str, Any]:
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return dict(toml.loads(text))


def _call(run: Run, command: Sequence[str], text: str, **options: Any) -> Any:
    try:
        return run(list(command), input=text, capture_output=True, text=True, check=False, **options)
    except OSError as error:
        raise NotReadyError(
            f"cannot run {command[0]}: {error.strerror or error}",
            remedy="install tfenv with its dependencies (it brings uv), or set TFENV_UV",
        ) from error


def failure(stderr: str) -> TfenvError:
    """What uv says on stderr as an error: its own reason, without colours, warnings and passwords."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stderr)
    lines = [line.rstrip() for line in plain.splitlines() if not line.startswith("warning:")]
    reason = redact("\n".join(line for line in lines if line)) or "uv failed without a word"
    if any(sign in reason for sign in _NETWORK_SIGNS):
        return NotReadyError(
            f"the package index cannot be reached:\n{reason}",
            remedy="check the network, proxy and CA settings (pip's and uv's own are used)",
        )
    if "No solution found" in reason:
        return UsageError(
            f"these requirements cannot be met:\n{reason}",
            remedy="change requirements or exclude_newer of the row in matrix.yaml",
        )
    return TfenvError(
        f"uv could not resolve:\n{reason}",
        remedy="correct what uv names; `uv --version` should work, TFENV_UV names another uv",
    )
