"""Containers: made, started, watched, and removed whatever happens."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tfenv.errors import TfenvError

from .errors import explained
from .gpus import device_request
from .images import Images
from .leftovers import LABEL, owner, remove_leftovers
from .network import Networks
from .spec import Ended, Spec

Output = tuple[bytes, bytes]


class Running:
    """A started container; ``Containers.container`` removes it."""

    def __init__(self, api: Any, name: str, stream: Any) -> None:
        self._api = api
        self._stream = stream
        self.id = name

    def output(self) -> Iterator[Output]:
        """(stdout, stderr) in pieces as they come, to the end of the container."""
        with explained():
            for out, err in self._stream:
                yield out or b"", err or b""

    def wait(self, timeout: float = 60) -> Ended:
        """Its end. ``timeout``: seconds."""
        with explained():
            status = int(self._api.wait(self.id, timeout=timeout)["StatusCode"])
            state = self._api.inspect_container(self.id)["State"]
            return Ended(status, bool(state.get("OOMKilled")))

    def kill(self) -> None:
        """End it now; nothing if it has ended. Where the engine does not answer, listen to it no longer."""
        import docker.errors

        try:
            with contextlib.suppress(docker.errors.APIError), explained(keep=(docker.errors.APIError,)):
                self._api.kill(self.id)
        except TfenvError:
            with contextlib.suppress(OSError, AttributeError, docker.errors.DockerException):
                self._stream.close()

    def exec(self, argv: Sequence[str], *, user: str = "") -> tuple[int, bytes, bytes]:
        """Run one more command in it: (exit status, stdout, stderr)."""
        with explained():
            made = self._api.exec_create(self.id, list(argv), user=user)
            out, err = self._api.exec_start(made["Id"], demux=True)
            status = self._api.exec_inspect(made["Id"])["ExitCode"]
            return int(status), out or b"", err or b""


class Containers(Images, Networks):
    """An engine, reached through the SDK."""

    @contextmanager
    def container(self, spec: Spec) -> Iterator[Running]:
        """Create and start a container, and remove it with its volumes whatever happens.

        Raises:
            ProgramMissingError: the image lacks the program to start.
            NotReadyError: no engine, no GPU support, no disk.
        """
        api = self._api
        made, name = "", f"tfenv-{secrets.token_hex(8)}"
        remove_leftovers(api)
        try:
            with explained():
                made = self._create(spec, name)
                # Attached before it starts: nothing that it prints is lost.
                stream = api.attach(made, stdout=True, stderr=True, stream=True, demux=True)
                api.start(made)
            yield Running(api, made, stream)
        finally:
            if made:
                self._remove_container(made)

    def _create(self, spec: Spec, name: str) -> str:
        try:
            return str(self._api.create_container(**self._config(spec), name=name)["Id"])
        except (KeyboardInterrupt, SystemExit):
            self._forget(name)
            raise

    def _forget(self, name: str, tries: int = 10) -> None:
        """Remove what the engine was making when nobody waited for the answer any more."""
        import docker.errors
        import requests

        for _ in range(tries):
            try:
                self._api.remove_container(name, v=True, force=True)
                return
            except docker.errors.APIError:  # it is not there yet, or not whole
                time.sleep(0.1)
            except requests.RequestException:
                return

    def _config(self, spec: Spec) -> dict[str, Any]:
        from docker.types import DeviceRequest, Mount

        api = self._api
        host = api.create_host_config(
            network_mode=spec.network,
            read_only=spec.read_only,
            shm_size=spec.shm_size,
            tmpfs=dict(spec.tmpfs),
            mounts=[
                Mount(bind.target, str(bind.source.resolve()), type="bind", read_only=bind.read_only)
                for bind in spec.binds
            ],
            device_requests=[DeviceRequest(**device_request(spec.gpus))] if spec.gpus else None,
            init=False,
        )
        network: dict[str, Any] = {}
        if spec.aliases:
            names = api.create_endpoint_config(aliases=list(spec.aliases))
            network = {"networking_config": api.create_networking_config({spec.network: names})}
        return {
            **network,
            "image": spec.image,
            "labels": {LABEL: owner()},
            "command": list(spec.command) or None,
            "user": spec.user or None,
            "entrypoint": list(spec.entrypoint) or None,
            "environment": dict(spec.env),
            "host_config": host,
            # The proxies of the client's config.json are the host's business, passwords included.
            "use_config_proxy": False,
        }

    def _remove_container(self, name: str, tries: int = 3) -> None:
        import docker.errors

        for left in reversed(range(tries)):
            try:
                with explained(keep=(docker.errors.NotFound,)):
                    self._api.remove_container(name, v=True, force=True)
                return
            except docker.errors.NotFound:
                return
            except TfenvError as error:
                if "is already in progress" in error.message:
                    return  # an earlier try of ours, to which a busy engine did not answer in time
                if not left:
                    raise
                time.sleep(0.5)

    def run(self, spec: Spec) -> tuple[Ended, bytes, bytes]:
        """Run a container to its end: (how it ended, stdout, stderr)."""
        with self.container(spec) as running:
            pieces = list(running.output())
            ended = running.wait()
        return ended, b"".join(out for out, _ in pieces), b"".join(err for _, err in pieces)
