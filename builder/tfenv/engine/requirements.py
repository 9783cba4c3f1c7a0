"""Can this engine build, export and keep an image with the digest that everybody else gets?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from tfenv import factfiles
from tfenv.errors import NotReadyError

from .model import Builder, Engine

_CONTAINERD = (
    'put {"features": {"containerd-snapshotter": true}} into /etc/docker/daemon.json and run\n'
    "`sudo systemctl restart docker` (images of the old store stay on disk, but are not listed)"
)

# Where the engine of the packages listens; any other endpoint was chosen by somebody.
_OWN_SOCKETS = ("", "unix:///var/run/docker.sock", "unix:///run/docker.sock")


@dataclass(frozen=True)
class Minimum:
    """The lowest version that does. ``why``: what it is the first to have."""

    version: str
    why: str

    def reached_by(self, version: str) -> bool:
        """Is ``version`` this one or newer?"""
        return version_of(version) >= version_of(self.version)


@cache
def minimum(of: str) -> Minimum:
    """The lowest version of ``engine``, ``buildx``, ``buildkit`` or ``cdi``: a fact, see engine.json."""
    told = factfiles.read("engine")[of]
    return Minimum(told["minimum"], told["why"])


def version_of(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: ``26.1.5+dfsg1`` is (26, 1, 5)."""
    found = re.match(r"v?(\d{1,9}(?:\.\d{1,9}){0,5})", text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def not_reached(problem: str, endpoint: str) -> NotReadyError:
    """The error for a client's complaint (``problem``) about the engine at ``endpoint``."""
    where = endpoint or "its socket"
    if "permission denied" in problem.lower():
        return NotReadyError(
            f"this user may not talk to the Docker Engine at {where}",
            remedy="run `sudo usermod -aG docker $USER` and log in again, or use sudo\n"
            "(members of the group docker can become root on this machine)",
        )
    lost = (
        "cannot connect",
        "connection refused",
        "daemon running",
        "no answer",
        "no route to host",
        "no such file",
        "no such host",
        "timed out",
    )
    if any(sign in problem.lower() for sign in lost):
        return NotReadyError(
            f"no Docker Engine answers at {where}",
            remedy="start it: `sudo systemctl start docker`, or `sudo service docker start`"
            if endpoint in _OWN_SOCKETS
            else "start it there, or unset DOCKER_HOST (`docker context use default`)\nto use this machine's",
        )
    return NotReadyError(
        f"the Docker Engine at {where} gave no usable answer"
        + (f": {problem.splitlines()[-1]}" if problem else ""),
        remedy="see what `docker version` says; DOCKER_HOST and `docker context ls` choose it",
    )


def old_store(version: str) -> NotReadyError:
    """The error for an engine that keeps its images in the store that it had before containerd's."""
    return NotReadyError(
        f"Docker Engine {version} does not use the containerd image store: "
        "an image would have another digest in it than the one that was built",
        remedy=_CONTAINERD,
    )


def check(engine: Engine) -> None:
    """Raise NotReadyError, with the remedy, unless ``engine`` can build, export and keep a cell's digest."""
    if engine.client is None:
        raise NotReadyError(
            "there is no docker client on PATH",
            remedy=f"install Docker Engine {minimum('engine').version} or newer with buildx "
            "(`make image` does it), then try again",
        )
    if engine.buildx is None:
        raise NotReadyError(
            f"{engine.client} has no buildx plugin",
            remedy="install it (Debian: docker-buildx, Docker's packages: docker-buildx-plugin),\n"
            "or name a client that has it in TFENV_DOCKER",
        )
    if engine.server_version is None:
        raise not_reached(engine.problem, engine.endpoint)
    lowest = minimum("buildx")
    if not lowest.reached_by(engine.buildx):
        raise NotReadyError(
            f"buildx {engine.buildx} is too old: {lowest.version} is {lowest.why}",
            remedy=f"install buildx {lowest.version} or newer",
        )
    builder = engine.builder
    if builder is not None and not builder.own:
        _check_builder(builder)
    else:
        _check_version(engine.server_version)
    if not engine.containerd:
        raise old_store(engine.server_version)


def _check_version(version: str) -> None:
    lowest = minimum("engine")
    if not lowest.reached_by(version):
        raise NotReadyError(
            f"Docker Engine {version} is too old: {lowest.version} is {lowest.why}",
            remedy=f"install Docker Engine {lowest.version} or newer (Debian 13: docker.io)",
        )


def _check_builder(builder: Builder) -> None:
    lowest = minimum("buildkit")
    # One that was never started does not say.
    if builder.buildkit and not lowest.reached_by(builder.buildkit):
        raise NotReadyError(
            f"builder {builder.name} runs BuildKit {builder.buildkit}, which is too old: "
            f"{lowest.version} is {lowest.why}",
            remedy=f"make a new one with BuildKit {lowest.version} or newer:\n"
            "`docker buildx create --driver docker-container --use`, "
            "or go back to the engine's own: `docker buildx use default`",
        )
