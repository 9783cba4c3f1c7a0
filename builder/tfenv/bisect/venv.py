"""Environments on this host: a fresh virtual environment for each set of pins, from uv's cache.

A fresh one each time, although changing one package of the last one would be as quick: with uv's hard
links it takes a second, and nothing of an earlier set can be left in it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tfenv.bisect.command import Ran, run_here
from tfenv.bisect.model import PinSet
from tfenv.errors import NotReadyError, TfenvError
from tfenv.index import IndexSettings

Run = Callable[..., "subprocess.CompletedProcess[str]"]
# Of the user's environment, what would make a Python look outside of the one that is tested.
_ELSEWHERE = ("PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "__PYVENV_LAUNCHER__")
_HTTP_STATUS = re.compile(r"HTTP status (?:client|server) error \((\d+)")
_DISK_FULL = ("No space left on device", "Disk quota exceeded")


class BuildRefused(Exception):  # noqa: N818  (an answer, not a fault)
    """No environment can be made of these pins, for a reason that is theirs."""


class Built(Protocol):
    """An environment that exists."""

    @property
    def requires(self) -> Mapping[str, tuple[str, ...]]:
        """What its packages ask for, by ``name==version``."""

    def run(self, command: Sequence[str], log: Path, timeout: float | None) -> Ran:
        """Run a command in it; ``log`` gets the output, ``timeout`` is in seconds."""


class Builder(Protocol):
    """A way to make environments."""

    def build(self, pins: PinSet) -> AbstractContextManager[Built]:
        """Make one, and remove it at the end. Raises BuildRefused; NotReadyError where none can be made."""


@dataclass(frozen=True)
class Venv:
    """A virtual environment that exists.

    Args:
        home: its folder. env: the user's environment. folder: where commands run.
    """

    home: Path
    env: Mapping[str, str]
    folder: Path

    @property
    def requires(self) -> Mapping[str, tuple[str, ...]]:
        """What its packages ask for, by ``name==version``: read, none of them is run."""
        return installed_requires(self.home)

    def run(self, command: Sequence[str], log: Path, timeout: float | None) -> Ran:
        """Run a command as if the environment were activated."""
        own = {key: value for key, value in self.env.items() if key not in _ELSEWHERE}
        path = os.pathsep.join([str(self.home / "bin"), own.get("PATH", os.defpath)])
        env = {**own, "VIRTUAL_ENV": str(self.home), "PATH": path, "PYTHONNOUSERSITE": "1"}
        return run_here(command, env=env, folder=self.folder, log=log, timeout=timeout)


@dataclass(frozen=True, kw_only=True)
class VenvBuilder:
    """Makes virtual environments.

    Args:
        home: the folder of the one that exists at a time.
        python: path of the interpreter.
        folder: where commands run.
        lines: pins -> what uv is given to install them. Raises BuildRefused.
    """

    home: Path
    python: str
    folder: Path
    lines: Callable[[PinSet], str]
    index: IndexSettings
    uv: str
    env: Mapping[str, str]
    run: Run = subprocess.run

    @contextmanager
    def build(self, pins: PinSet) -> Iterator[Built]:
        """See ``Builder``."""
        shutil.rmtree(self.home, ignore_errors=True)  # a kill may have left one
        try:
            self._uv(["venv", "--quiet", "--python", self.python, "--no-project", str(self.home)], "")
            if pins.pins:
                self._uv(["pip", "install", "--quiet", *self._options(pins)], self.lines(pins))
            yield Venv(self.home, self.env, self.folder)
        finally:
            shutil.rmtree(self.home, ignore_errors=True)

    def _options(self, pins: PinSet) -> list[str]:
        options = ["--python", str(self.home / "bin" / "python"), "--no-deps", "--requirement", "-"]
        options += ["--only-binary", ":all:"]
        for pin in pins.pins:
            if pin.source:
                options += ["--no-binary", pin.name]
        return [*options, *(["--require-hashes"] if pins.hashed else []), *self.index.uv_args()]

    def _uv(self, arguments: Sequence[str], text: str) -> None:
        env = {**self.index.environment(self.env), "NO_COLOR": "1"}
        command = [self.uv, *arguments]
        try:
            # In a folder of its own, so that no pyproject.toml of the user's project has a say.
            self.home.parent.mkdir(parents=True, exist_ok=True)
            done = self.run(
                command,
                input=text,
                capture_output=True,
                text=True,
                check=False,
                env=env,
                cwd=self.home.parent,
            )
        except OSError as error:
            raise NotReadyError(
                f"cannot run {self.uv}: {error.strerror or error}",
                remedy="install tfenv with its dependencies (it brings uv), or set TFENV_UV",
            ) from error
        if done.returncode:
            raise _failure(done.stderr)


def installed_requires(home: Path) -> Mapping[str, tuple[str, ...]]:
    """Requires-Dist of each package in a virtual environment, by ``name==version``."""
    from importlib.metadata import distributions

    from packaging.utils import canonicalize_name

    found: dict[str, tuple[str, ...]] = {}
    for place in home.glob("lib/python*/site-packages"):
        for distribution in distributions(path=[str(place)]):
            name, version = distribution.metadata["Name"], distribution.metadata["Version"]
            if name and version:
                found[f"{canonicalize_name(name)}=={version}"] = tuple(distribution.requires or ())
    return found


def _failure(stderr: str) -> Exception:
    """uv's failure: of the pins, or of this host."""
    from tfenv.uv import failure

    told: TfenvError = failure(stderr)
    if isinstance(told, NotReadyError):
        return told
    reason = told.message.partition("\n")[2].strip() or told.message
    if any(sign in reason for sign in _DISK_FULL):
        return NotReadyError(
            f"the disk is full: {reason.splitlines()[-1]}",
            remedy="free some (`tfenv gc`, `uv cache prune`), then type the command again: it goes on here",
        )
    gone = (404, 410)
    if any(int(code) not in gone for code in _HTTP_STATUS.findall(reason)):
        return NotReadyError(
            f"the package index does not give a file:\n{reason}",
            remedy="see to that, then type the command again: it goes on here",
        )
    return BuildRefused(" ".join(reason.split()))
