"""Reach the engine that the docker client would talk to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tfenv.engine import not_reached
from tfenv.errors import NotReadyError

from .errors import explained
from .running import Containers

if TYPE_CHECKING:
    from docker import DockerClient


@contextmanager
def connect(env: Mapping[str, str] = os.environ, *, timeout: int = 60) -> Iterator[Containers]:
    """The engine that the docker client would talk to: DOCKER_HOST, else the current context.

    Args:
        timeout: seconds for one answer of the engine.

    Raises:
        NotReadyError: it does not answer.
    """
    with explained():
        try:
            client = _client(env, timeout)
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            # The SDK takes it for granted that addresses and the client's configuration are well-formed.
            if env.get("DOCKER_HOST"):
                raise not_reached(str(error), env["DOCKER_HOST"]) from error
            folder = env.get("DOCKER_CONFIG") or "~/.docker"
            raise NotReadyError(
                f"the docker client's configuration in {folder} is not usable: {error}",
                remedy="mend its config.json, or move it away; see `docker context ls`",
            ) from error
    try:
        with explained():
            client.ping()
        yield Containers(client.api)
    finally:
        client.close()


def _client(env: Mapping[str, str], timeout: int) -> DockerClient:
    import docker
    from docker.context import ContextAPI

    if not env.get("DOCKER_HOST"):
        context = ContextAPI.get_context(env.get("DOCKER_CONTEXT") or None)
        if context is None:  # the SDK would go on with the default engine
            raise NotReadyError(
                f"there is no docker context {env.get('DOCKER_CONTEXT') or 'of the current name'}",
                remedy="see `docker context ls`; type `docker context use default`, or unset DOCKER_CONTEXT",
            )
        if context.Host and context.name != "default":
            return docker.DockerClient(
                base_url=context.Host,
                tls=context.TLSConfig or False,
                timeout=timeout,
                use_ssh_client=context.Host.startswith("ssh://"),
            )
    return docker.from_env(
        environment=dict(env),
        timeout=timeout,
        use_ssh_client=env.get("DOCKER_HOST", "").startswith("ssh://"),
    )
