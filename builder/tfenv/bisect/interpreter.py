"""The Python on this host from which virtual environments are made."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping

from tfenv.errors import NotReadyError, UsageError
from tfenv.uv import uv_binary

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def find_python(version: str, env: Mapping[str, str], run: Run = subprocess.run) -> str:
    """The path of this host's interpreter of that version (``3.11``).

    Raises:
        NotReadyError: the host has none. Nothing is downloaded unasked.
    """
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    command = [uv_binary(env), "python", "find", "--no-project", "--no-python-downloads", version]
    own = {key: value for key, value in env.items() if key not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    try:
        done = run(command, capture_output=True, text=True, check=False, env=own, cwd="/")
    except OSError as error:
        raise NotReadyError(
            f"cannot run {command[0]}: {error.strerror or error}",
            remedy="install tfenv with its dependencies (it brings uv), or set TFENV_UV",
        ) from error
    if done.returncode or not done.stdout.strip():
        raise NotReadyError(
            f"there is no Python {version} on this host",
            remedy=f"install it (`uv python install {version}`, or your distribution's package), name it "
            "with --python PATH, or bisect in the cell's image: --in image",
        )
    return done.stdout.strip()


def version_of(path: str, run: Run = subprocess.run) -> str:
    """The version (``3.11``) of an interpreter. Raises UsageError where it is none."""
    command = [path, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = run(command, capture_output=True, text=True, check=False, timeout=60)
        version = done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{path} cannot be run: {error}", remedy="give a Python's path") from error
    if not re.fullmatch(r"3\.\d+", version):
        raise UsageError(f"{path} is no Python 3", remedy="give the path of one")
    return version
