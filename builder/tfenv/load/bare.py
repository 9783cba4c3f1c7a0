"""The same wheels without a container: the program under a Python of this host, for comparison."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tfenv.container import Spec
from tfenv.errors import UsageError
from tfenv.given_gpus import steering
from tfenv.processes import RunningProcess

BARE = "no container"  # in the place of the engine's version


@dataclass(frozen=True)
class Bare:
    """A Python of this host that starts as a container of an engine would.

    Args:
        python: that of a virtual environment with TensorFlow. env: the host's.
    """

    python: Path
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def argv(self, spec: Spec) -> list[str]:
        """The command of ``spec`` under this Python, what is bound taken from where it lies."""
        line = [str(self.python)]
        for word in spec.command:
            for bind in spec.binds:
                if word.startswith(f"{bind.target}/"):
                    word = str(bind.source / word[len(bind.target) + 1 :])
            line.append(word)
        return line

    @contextmanager
    def container(self, spec: Spec) -> Iterator[RunningProcess]:
        """Start it; ended whatever happens.

        Raises:
            UsageError: there is no such Python.
        """
        env = {name: value for name, value in self.env.items() if not name.startswith("PYTHON")}
        env |= steering(spec.gpus)
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                self.argv(spec),
                stdin=subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"{self.python} cannot be started: {error.strerror}",
                remedy="name the python of an environment",
            ) from None
        running = RunningProcess(process)
        with process:
            try:
                yield running
            finally:
                running.kill()
