"""What is known of a Docker Engine, its client and its builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Completed:
    """What a finished command left: exit status and text."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[[Sequence[str]], Completed]


@dataclass(frozen=True, kw_only=True)
class Builder:
    """A buildx builder. ``buildkit`` is None where it does not say (not started, distribution)."""

    name: str
    driver: str
    buildkit: str | None = None
    status: str = ""

    @property
    def own(self) -> bool:
        """Is it the engine's own, and not one in a container or elsewhere?"""
        return self.driver in ("docker", "")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What is known of the engine; None is *not there* or *does not say*.

    Args:
        client: path of the docker client in use, the first one that has buildx.
        containerd: the engine keeps its images in containerd's store.
        builder: the current buildx builder; builders: the names of all.
        root_dir: where the engine keeps its data (for the disk check).
        proxied: the client's config.json has a ``proxies`` section, which buildx adds to builds.
        problem: what the client said when it could not reach the engine.
    """

    client: str | None = None
    client_version: str | None = None
    server_version: str | None = None
    buildx: str | None = None
    containerd: bool = False
    builder: Builder | None = None
    builders: tuple[str, ...] = ()
    rootless: bool = False
    endpoint: str = ""
    root_dir: str = ""
    kernel: str = ""
    proxied: bool = False
    problem: str = ""
