"""The docker client that works here, how pytest-testinfra talks through it, and the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from testinfra.backend.base import CommandResult
from testinfra.backend.docker import DockerBackend
from testinfra.host import Host
from tfenv.engine import Completed, run_command


@dataclass(frozen=True)
class Docker:
    """Calls the docker client at ``path``."""

    path: str

    def try_(self, *argv: str, timeout: float = 300) -> Completed:
        """Whatever comes of it."""
        return run_command([self.path, *argv], timeout=timeout)

    def __call__(self, *argv: str, timeout: float = 300) -> str:
        """stdout; anything but exit status 0 fails the test."""
        done = self.try_(*argv, timeout=timeout)
        assert done.returncode == 0, f"docker {' '.join(argv)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def host(self, container: str, user: str = "") -> Host:
        """A container as pytest-testinfra's host; ``user`` empty is the image's own."""
        return Host(_Backend(self.path, f"{user}@{container}" if user else container))


class _Backend(DockerBackend):
    """pytest-testinfra's own takes the first ``docker`` on PATH, which need not be the one that works."""

    def __init__(self, client: str, name: str) -> None:
        super().__init__(name)
        self._client = client

    def run(self, command: str, *args: str, **kwargs: object) -> CommandResult:
        line = self.get_command(command, *args)
        user = ("--user", self.user) if self.user else ()
        argv = (self._client, "exec", *user, self.name, "/bin/sh", "-c", line)
        out = self.run_local(" ".join(["%s"] * len(argv)), *argv)
        out.command = self.encode(line)
        return out


@dataclass(frozen=True)
class Image:
    """The built image: its name, its id, its configuration and whether it is the locked one."""

    name: str
    id: str
    config: dict[str, Any]

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.config["Labels"])

    @property
    def environment(self) -> dict[str, str]:
        return dict(item.split("=", 1) for item in self.config["Env"])

    @property
    def locked(self) -> bool:
        """False: `make image` had to take today's Debian packages, and said so in this label."""
        return self.labels.get("dev.tfenv.locked") != "false"
