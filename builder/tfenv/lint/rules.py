"""What a rule about Dockerfiles is, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tfenv.compat.model import Finding

from .dockerfile import Stage


@dataclass(frozen=True, kw_only=True)
class Dockerfile:
    """A Dockerfile's stages; ``final`` is the one that becomes the image."""

    stages: tuple[Stage, ...]

    @property
    def final(self) -> Stage:
        """The last stage."""
        return self.stages[-1]


Check = Callable[[Dockerfile], Iterator[Finding]]


@dataclass(frozen=True)
class DockerfileRule:
    """A rule: ``check`` gives findings of this ``code`` alone."""

    code: str
    check: Check
