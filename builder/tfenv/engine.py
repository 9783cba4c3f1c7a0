"""Which Docker Engine is here, and can it export an image bit for bit reproducibly?

``probe`` only asks, ``check`` only decides; nothing is ever changed on the host.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfenv.errors import NotReadyError

ENGINE_MIN = (26,)
BUILDX_MIN = (0, 13)  # the first with --progress=rawjson
BUILDKIT_MIN = (0, 13)  # the first whose exporters know rewrite-timestamp

_INSTALL = "install Docker Engine 26 or newer with buildx (`make image` does it), then try again"
_CONTAINERD = (
    'put {"features": {"containerd-snapshotter": true}} into /etc/docker/daemon.json and run\n'
    "`sudo systemctl restart docker` (images of the old store stay on disk, but are not listed)"
)


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


def run_command(argv: Sequence[str], *, timeout: float = 60) -> Completed:
    """Run ``argv`` without a shell; a missing program is exit status 127, a hanging one 124."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        return Completed(127, "", str(error))
    except subprocess.TimeoutExpired:
        return Completed(124, "", f"no answer within {timeout:.0f} s: {' '.join(argv)}")
    except OSError as error:
        return Completed(126, "", str(error))
    return Completed(done.returncode, done.stdout, done.stderr)


def clients(env: Mapping[str, str], is_program: Callable[[Path], bool]) -> tuple[str, ...]:
    """Every docker client to try, best first; ``$TFENV_DOCKER`` alone where it is set."""
    if chosen := env.get("TFENV_DOCKER"):
        return (chosen,)
    folders = [*(f for f in env.get("PATH", "").split(os.pathsep) if f), "/usr/bin"]
    paths = (Path(folder) / "docker" for folder in folders)
    return tuple(dict.fromkeys(str(path) for path in paths if is_program(path)))


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _buildx_version(run: Run, client: str) -> str | None:
    done = run([client, "buildx", "version"])
    found = re.search(r"buildx v?(\d+\.\S+)", done.stdout)
    return found.group(1) if done.returncode == 0 and found else None


def _choose(run: Run, paths: Sequence[str]) -> tuple[str | None, str | None]:
    for path in paths:
        if version := _buildx_version(run, path):
            return path, version
    return (paths[0] if paths else None), None


def _field(text: str, pattern: str) -> str:
    found = re.search(rf"^{pattern}:\s*(\S+)", text, re.MULTILINE | re.IGNORECASE)
    return found.group(1) if found else ""


def parse_builder(text: str) -> Builder | None:
    """The current builder from ``docker buildx inspect``."""
    if not (name := _field(text, "Name")):
        return None
    # Debian's engine says v0.0.0+unknown: the version of the vendored BuildKit was not stamped.
    buildkit = _field(text, r"build ?kit(?: version)?").lstrip("v")
    return Builder(
        name=name,
        driver=_field(text, "Driver"),
        buildkit=None if not buildkit or buildkit.startswith("0.0.0") else buildkit,
        status=_field(text, "Status"),
    )


def parse_builders(text: str) -> tuple[str, ...]:
    """The builders' names from ``docker buildx ls``: the lines that are no node of another."""
    lines = text.splitlines()[1:]
    names = (line.split()[0].rstrip("*") for line in lines if line.strip() and line[0] not in " \\")
    return tuple(dict.fromkeys(names))


def _endpoint(run: Run, client: str, env: Mapping[str, str]) -> str:
    if host := env.get("DOCKER_HOST"):
        return host
    done = run([client, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"])
    return done.stdout.strip() if done.returncode == 0 else ""


def _proxied(env: Mapping[str, str], read: Callable[[Path], str]) -> bool:
    folder = env.get("DOCKER_CONFIG") or f"{env.get('HOME', '')}/.docker"
    return bool(_json(read(Path(folder) / "config.json")).get("proxies"))


def probe(
    run: Run = run_command,
    env: Mapping[str, str] = os.environ,
    *,
    is_program: Callable[[Path], bool] = _is_program,
    read: Callable[[Path], str] = _read,
) -> Engine:
    """Ask the docker client and the engine what they are. Raises nothing: see ``check``."""
    client, buildx = _choose(run, clients(env, is_program))
    if client is None:
        return Engine()
    told = run([client, "version", "--format", "{{json .}}"])
    version = _json(told.stdout)
    server = version.get("Server") or {}
    common = Engine(
        client=client,
        client_version=(version.get("Client") or {}).get("Version"),
        buildx=buildx,
        endpoint=_endpoint(run, client, env),
        proxied=_proxied(env, read),
        problem=told.stderr.strip(),
    )
    if not server.get("Version"):
        return common
    info = _json(run([client, "info", "--format", "{{json .}}"]).stdout)
    status = [tuple(pair) for pair in info.get("DriverStatus") or ()]
    inspected = run([client, "buildx", "inspect"]).stdout if buildx else ""
    listed = run([client, "buildx", "ls"]).stdout if buildx else ""
    return Engine(
        client=client,
        client_version=common.client_version,
        server_version=server["Version"],
        buildx=buildx,
        containerd=("driver-type", "io.containerd.snapshotter.v1") in status,
        builder=parse_builder(inspected),
        builders=parse_builders(listed),
        rootless=any("rootless" in option for option in info.get("SecurityOptions") or ()),
        endpoint=common.endpoint,
        root_dir=info.get("DockerRootDir", ""),
        kernel=info.get("KernelVersion", ""),
        proxied=common.proxied,
    )


def version_of(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: ``26.1.5+dfsg1`` is (26, 1, 5)."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text)
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
    lost = ("cannot connect", "no such file", "connection refused", "daemon running", "no answer")
    if any(sign in problem.lower() for sign in lost):
        local = not endpoint or endpoint.startswith("unix://")
        return NotReadyError(
            f"no Docker Engine answers at {where}",
            remedy="start it: `sudo systemctl start docker`, or `sudo service docker start`"
            if local
            else "check DOCKER_HOST and `docker context ls`, and that the other machine is up",
        )
    return NotReadyError(
        f"the Docker Engine at {where} gave no usable answer"
        + (f": {problem.splitlines()[-1]}" if problem else ""),
        remedy="see what `docker version` says; DOCKER_HOST and `docker context ls` choose it",
    )


def check(engine: Engine) -> None:
    """Raise NotReadyError, with the remedy, unless ``engine`` can export reproducibly."""
    if engine.client is None:
        raise NotReadyError("there is no docker client on PATH", remedy=_INSTALL)
    if engine.buildx is None:
        raise NotReadyError(
            f"{engine.client} has no buildx plugin",
            remedy="install it (Debian: docker-buildx, Docker's packages: docker-buildx-plugin),\n"
            "or name a client that has it in TFENV_DOCKER",
        )
    if engine.server_version is None:
        raise not_reached(engine.problem, engine.endpoint)
    if version_of(engine.buildx) < BUILDX_MIN:
        raise NotReadyError(
            f"buildx {engine.buildx} is too old: it cannot report progress as JSON",
            remedy="install buildx 0.13 or newer",
        )
    builder = engine.builder
    if builder is not None and builder.driver not in ("docker", ""):
        _check_buildkit(builder)
        return
    if version_of(engine.server_version) < ENGINE_MIN:
        raise NotReadyError(
            f"Docker Engine {engine.server_version} is too old: it cannot rewrite file times "
            "in layers, so an image built with it has another digest each time",
            remedy="install Docker Engine 26 or newer (Debian 13: docker.io), or use a builder\n"
            "of its own: `docker buildx create --driver docker-container --use`",
        )
    if not engine.containerd:
        raise NotReadyError(
            f"Docker Engine {engine.server_version} does not use the containerd image store: "
            "it cannot export an OCI image, nor keep its digest",
            remedy=_CONTAINERD,
        )


def _check_buildkit(builder: Builder) -> None:
    if builder.buildkit and version_of(builder.buildkit) < BUILDKIT_MIN:
        raise NotReadyError(
            f"builder {builder.name} runs BuildKit {builder.buildkit}: it cannot rewrite file times",
            remedy="make a new one with BuildKit 0.13 or newer:\n"
            "`docker buildx create --driver docker-container --use`, "
            "or go back to the engine's own: `docker buildx use default`",
        )
