"""Ask which Docker Engine, client and builder are here; nothing is ever changed on the host."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .model import Builder, Completed, Engine, Run


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


def probe_builder(run: Run, client: str) -> Builder | None:
    """The current builder. One in a container says which BuildKit it is once it has been started."""
    return parse_builder(run([client, "buildx", "inspect"]).stdout)


def parse_builders(text: str) -> tuple[str, ...]:
    """The builders' names from ``docker buildx ls``: the lines that are no node of another."""
    lines = text.splitlines()[1:]
    names = (line.split()[0].rstrip("*") for line in lines if line.strip() and line[0] not in " \\")
    return tuple(dict.fromkeys(names))


def keeps_digests(info: Mapping[str, Any]) -> bool:
    """Are the images in containerd's store? ``info`` is what the engine says of itself."""
    status = [tuple(pair) for pair in info.get("DriverStatus") or ()]
    return ("driver-type", "io.containerd.snapshotter.v1") in status


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
    listed = run([client, "buildx", "ls"]).stdout if buildx else ""
    return Engine(
        client=client,
        client_version=common.client_version,
        server_version=server["Version"],
        buildx=buildx,
        containerd=keeps_digests(info),
        builder=probe_builder(run, client) if buildx else None,
        builders=parse_builders(listed),
        rootless=any("rootless" in option for option in info.get("SecurityOptions") or ()),
        endpoint=common.endpoint,
        root_dir=info.get("DockerRootDir", ""),
        kernel=info.get("KernelVersion", ""),
        proxied=common.proxied,
    )
