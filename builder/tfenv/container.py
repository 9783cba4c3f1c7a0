"""The only place that runs containers and moves tags: the Docker SDK, with its errors explained."""

from __future__ import annotations

import contextlib
import json
import os
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tfenv import oci
from tfenv.engine import not_reached
from tfenv.errors import IntegrityError, NotReadyError, TfenvError

if TYPE_CHECKING:
    from docker import DockerClient

Output = tuple[bytes, bytes]


class ContainerError(TfenvError):
    """The engine refused something, for a reason that is not the host's readiness."""


class ProgramMissingError(ContainerError):
    """The image has no such program."""


@dataclass(frozen=True)
class Bind:
    """A host folder or file seen inside a container."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A container to run.

    Args:
        entrypoint: replaces the image's own; empty keeps it.
        user: empty keeps the image's. network: ``none`` or a network's name.
        shm_size: e.g. ``2g``. tmpfs: mount options by folder.
        gpus: give it all NVIDIA GPUs.
    """

    image: str
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""
    network: str = "none"
    read_only: bool = True
    shm_size: str = "2g"
    tmpfs: Mapping[str, str] = field(default_factory=lambda: {"/tmp": "rw,exec,mode=1777"})
    binds: tuple[Bind, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    gpus: bool = False


@dataclass(frozen=True)
class Ended:
    """How a container ended."""

    status: int
    out_of_memory: bool = False


class Running:
    """A started container; ``Containers.container`` removes it."""

    def __init__(self, api: Any, name: str, stream: Iterator[Any]) -> None:
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
        """End it now; nothing if it has ended."""
        import docker.errors

        with contextlib.suppress(docker.errors.APIError), explained(keep=(docker.errors.APIError,)):
            self._api.kill(self.id)

    def exec(self, argv: Sequence[str], *, user: str = "") -> tuple[int, bytes, bytes]:
        """Run one more command in it: (exit status, stdout, stderr)."""
        with explained():
            made = self._api.exec_create(self.id, list(argv), user=user)
            out, err = self._api.exec_start(made["Id"], demux=True)
            status = self._api.exec_inspect(made["Id"])["ExitCode"]
            return int(status), out or b"", err or b""

    def logs(self, tail: int = 20) -> str:
        """The last lines that it printed, stdout and stderr together."""
        with explained():
            return str(self._api.logs(self.id, tail=tail).decode("utf-8", "replace"))


@contextmanager
def explained(keep: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn the SDK's errors, but those of ``keep``, into the project's."""
    import docker.errors
    import requests

    try:
        yield
    except keep:
        raise
    except docker.errors.APIError as error:
        raise explain_api(str(error.explanation or error)) from error
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise not_reached(str(error), os.environ.get("DOCKER_HOST", "")) from error


def explain_api(said: str) -> TfenvError:
    """The project's error for what the engine ``said``."""
    low = said.lower()
    if "could not select device driver" in low or "nvidia-container-cli" in low:
        return NotReadyError(
            f"the engine cannot give a GPU to a container: {said.strip()}",
            remedy="install nvidia-container-toolkit, run `sudo nvidia-ctk runtime configure\n"
            "--runtime=docker` and `sudo systemctl restart docker`; `nvidia-smi` must work first",
        )
    if "no space left on device" in low:
        return NotReadyError(
            f"the engine's disk is full: {said.strip()}",
            remedy="free some: `tfenv gc`, `docker image prune`, `docker builder prune`",
        )
    if "bind source path does not exist" in low:
        return NotReadyError(
            f"the engine does not see this machine's files: {said.strip()}",
            remedy="it runs elsewhere: set TMPDIR to a folder that both see, or run tfenv there",
        )
    missing = ("executable file not found", "no such file or directory: unknown")
    if any(sign in low for sign in missing):
        return ProgramMissingError(
            f"the image lacks a program: {said.strip()}", remedy="use an image that has it"
        )
    return ContainerError(
        f"the engine refused: {said.strip()}",
        remedy="see the engine's log: journalctl -u docker, or where dockerd writes it",
    )


def split_name(name: str) -> tuple[str, str]:
    """``registry:5000/tfenv:2.15`` is (``registry:5000/tfenv``, ``2.15``)."""
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "latest")


class Containers:
    """An engine, reached through the SDK. Images are named by tag or by id."""

    def __init__(self, api: Any) -> None:
        self._api = api  # docker.APIClient, of which the published types know too little

    def inspect(self, name: str) -> str | None:
        """The id of the image ``name``, None if there is none.

        In the containerd store the id is the manifest's digest, in the older one the config's.
        """
        image = self.image(name)
        return str(image["Id"]) if image else None

    def image(self, name: str) -> dict[str, Any] | None:
        """All that the engine says of the image ``name``, None if there is none."""
        import docker.errors

        with explained(keep=(docker.errors.ImageNotFound,)):
            try:
                return dict(self._api.inspect_image(name))
            except docker.errors.ImageNotFound:
                return None

    def load(self, archive: Path, on_bytes: Callable[[int], None] = lambda _read: None) -> str:
        """Load an OCI archive, tag nothing, and return the id by which the engine knows it.

        Args:
            on_bytes: gets the number of bytes read so far.

        Raises:
            IntegrityError: the archive is not usable, or the engine holds another image after it.
        """
        described = oci.describe(archive)
        head = b"" if self._keeps_oci() else _docker_manifest(described)
        with archive.open("rb") as stream, self._patient(), explained():
            for line in self._api.load_image(_Counting(stream, on_bytes, head)):
                if "error" in line:
                    raise explain_api(str(line["error"]))
        known = (described.manifest_digest, described.config_digest)
        found = next((digest for digest in known if self.inspect(digest) == digest), None)
        if found is None:
            raise IntegrityError(
                f"the engine did not keep the digest {described.manifest_digest} of {archive}",
                remedy="check the engine: `docker info` should show driver-type io.containerd.snapshotter.v1",
            )
        return found

    def _keeps_oci(self) -> bool:
        with explained():
            status = self._api.info().get("DriverStatus") or ()
            return ["driver-type", "io.containerd.snapshotter.v1"] in [list(pair) for pair in status]

    @contextmanager
    def _patient(self) -> Iterator[None]:
        # The engine is silent while it unpacks some gigabytes: no time limit on that answer.
        api = self._api
        before, api.timeout = api.timeout, None
        try:
            yield
        finally:
            api.timeout = before

    def tag(self, image: str, names: Sequence[str]) -> None:
        """Point every one of ``names`` at ``image``, or none of them."""
        if self.inspect(image) is None:
            raise ContainerError(f"there is no image {image} to tag", remedy="run `tfenv build`")
        before = {name: self.inspect(name) for name in names}
        moved: list[str] = []
        try:
            for name in names:
                moved.append(name)
                self._tag(image, name)
        except BaseException:
            for name in moved:
                old = before[name]
                with contextlib.suppress(TfenvError):
                    self._tag(old, name) if old else self.remove(name)
            raise

    def _tag(self, image: str, name: str) -> None:
        repository, tag = split_name(name)
        with explained():
            self._api.tag(image, repository, tag)

    def remove(self, name: str) -> bool:
        """Remove a tag, or an image by its id; False if there is none."""
        import docker.errors

        with explained(keep=(docker.errors.ImageNotFound,)):
            try:
                self._api.remove_image(name)
            except docker.errors.ImageNotFound:
                return False
        return True

    @contextmanager
    def container(self, spec: Spec) -> Iterator[Running]:
        """Create and start a container, and remove it with its volumes whatever happens.

        Raises:
            ProgramMissingError: the image lacks the program to start.
            NotReadyError: no engine, no GPU support, no disk.
        """
        api = self._api
        made = ""
        try:
            with explained():
                made = api.create_container_from_config(self._config(spec), None)["Id"]
                # Attached before it starts: nothing that it prints is lost.
                stream = api.attach(made, stdout=True, stderr=True, stream=True, demux=True)
                api.start(made)
            yield Running(api, made, stream)
        finally:
            if made:
                self._remove_container(made)

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
            device_requests=[DeviceRequest(count=-1, capabilities=[["gpu"]])] if spec.gpus else None,
            init=False,
        )
        config = api.create_container_config(
            spec.image,
            list(spec.command) or None,
            user=spec.user or None,
            entrypoint=list(spec.entrypoint) or None,
            environment=dict(spec.env),
            host_config=host,
        )
        return dict(config)

    def _remove_container(self, name: str, tries: int = 3) -> None:
        import docker.errors

        for left in reversed(range(tries)):
            try:
                with explained(keep=(docker.errors.NotFound,)):
                    self._api.remove_container(name, v=True, force=True)
                return
            except docker.errors.NotFound:
                return
            except TfenvError:
                if not left:
                    raise
                time.sleep(0.5)

    def run(self, spec: Spec) -> tuple[Ended, bytes, bytes]:
        """Run a container to its end: (how it ended, stdout, stderr)."""
        with self.container(spec) as running:
            pieces = list(running.output())
            ended = running.wait()
        return ended, b"".join(out for out, _ in pieces), b"".join(err for _, err in pieces)


def _docker_manifest(archive: oci.Archive) -> bytes:
    """A tar member that Docker's older image store needs to read an OCI archive."""

    def blob(digest: str) -> str:
        return f"blobs/sha256/{digest.removeprefix('sha256:')}"

    layers = [blob(layer.digest) for layer in archive.layers]
    entry = {"Config": blob(archive.config_digest), "RepoTags": None, "Layers": layers}
    data = json.dumps([entry]).encode()
    info = tarfile.TarInfo("manifest.json")
    info.size = len(data)
    return info.tobuf() + data + b"\0" * (-len(data) % tarfile.BLOCKSIZE)


class _Counting:
    """A file with ``head`` before it, that tells how far it was read."""

    def __init__(self, stream: IO[bytes], on_bytes: Callable[[int], None], head: bytes) -> None:
        self._stream = stream
        self._on_bytes = on_bytes
        self._head = head

    def __iter__(self) -> Iterator[bytes]:
        if self._head:
            yield self._head
        while data := self._stream.read(1 << 20):
            self._on_bytes(self._stream.tell())
            yield data


@contextmanager
def connect(env: Mapping[str, str] = os.environ, *, timeout: int = 60) -> Iterator[Containers]:
    """The engine that the docker client would talk to: DOCKER_HOST, else the current context.

    Args:
        timeout: seconds for one answer of the engine.

    Raises:
        NotReadyError: it does not answer.
    """
    with explained():
        client = _client(env, timeout)
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
        if context is not None and context.Host and context.name != "default":
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
