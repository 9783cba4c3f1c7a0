"""Docker or Podman: which clients there are, whether an engine answers them, and of what kind it is."""

from __future__ import annotations

import re
from typing import Any

from tfenv.doctor.evidence import Evidence, Ran
from tfenv.doctor.table import CLIENTS

from .words import find, listed, one_line, parsed, short_lines, yes

INFO = "info --format {{json .}}"


def infos(of: Evidence) -> list[tuple[str, Ran]]:
    """What each docker client got, the first on PATH first."""
    order = of.folders.get(CLIENTS, [])
    asked = {
        line.removesuffix(f" {INFO}"): ran for line, ran in of.commands.items() if line.endswith(f" {INFO}")
    }
    return [
        (client, asked[client])
        for client in sorted(asked, key=lambda c: order.index(c) if c in order else 99)
    ]


def info(of: Evidence) -> dict[str, Any]:
    """What the engine says of itself, to the client that a user gets; empty where it says nothing."""
    for _, ran in infos(of):
        if (found := parsed(ran.out)).get("ServerVersion"):
            return found
    return {}


def read(of: Evidence) -> dict[str, str]:
    """``engine``, a state, and what it is."""
    asked = infos(of)
    told = info(of)
    silent = [ran for _, ran in asked if not parsed(ran.out).get("ServerVersion")]
    said = "\n".join(short_lines(ran.err if parsed(ran.out) else ran.said) for ran in silent)
    errors = " ".join(map(str, parsed(asked[0][1].out).get("ServerErrors") or ())) if asked else ""
    client = parsed(asked[0][1].out).get("ClientInfo") if asked else None
    client = client if isinstance(client, dict) else {}
    plugins = {str(p.get("Name")): p for p in client.get("Plugins") or () if isinstance(p, dict)}
    without = [path for path, ran in asked if not _has_buildx(ran)]
    options = " ".join(map(str, told.get("SecurityOptions") or ()))
    root = str(told.get("DockerRootDir", ""))
    podman = of.command("podman --version")
    emulated = any(re.search(r"using podman|podman: |podman.sock", ran.err) for _, ran in asked[:1])
    context = str(client.get("Context", ""))
    return {
        "engine": _state(asked, told, f"{said}\n{errors}"),
        "engine_said": one_line(f"{errors} {said}" if not told else "", 240),
        "engine_version": str(told.get("ServerVersion", "")),
        "engine_root": root,
        "docker_clients": listed([path for path, _ in asked]),
        "client": asked[0][0] if asked else "",
        "client_without_buildx": without[0] if without and len(without) < len(asked) else "",
        "buildx": yes(len(without) < len(asked)) if asked and told else "",
        "buildx_trouble": one_line(str(plugins.get("buildx", {}).get("Err", ""))),
        "containerd_store": yes("io.containerd.snapshotter" in str(told.get("DriverStatus"))) if told else "",
        "cgroup_driver": str(told.get("CgroupDriver", "")),
        "cgroup_version": str(told.get("CgroupVersion", "")),
        "rootless": yes("rootless" in options) if told else "",
        "userns": yes("userns" in options) if told else "",
        "snap_docker": yes("/snap/" in root or (asked and asked[0][0].startswith("/snap/"))),
        "docker_desktop": yes(
            "Docker Desktop" in str(told.get("OperatingSystem", "")) or context == "desktop-linux"
        ),
        "context": context,
        "docker_host": of.env.get("DOCKER_HOST", ""),
        "podman": find(r"podman version (\S+)", podman.out),
        "docker_is_podman": yes(emulated),
        "in_docker_group": yes("docker" in of.user.get("groups", ())) if "groups" in of.user else "",
        "windows_engine": yes(told.get("OSType") == "windows") if told else "",
    }


def _has_buildx(ran: Ran) -> bool:
    client = parsed(ran.out).get("ClientInfo")
    plugins = client.get("Plugins") if isinstance(client, dict) else None
    return any(isinstance(p, dict) and p.get("Name") == "buildx" and not p.get("Err") for p in plugins or ())


def _state(asked: list[tuple[str, Ran]], told: dict[str, Any], said: str) -> str:
    if told:
        return "ok"
    if not asked:
        return "missing"
    ran = asked[0][1]
    if ran.skipped:
        return "asleep"
    if ran.status == 127:
        return "missing"
    if ran.late:
        return "hangs"
    if re.search(r"permission denied", said, re.IGNORECASE):
        return "permission"
    lost = (
        r"cannot connect|is the docker daemon running|connection refused|no such (?:file|host)"
        r"|failed to connect|i/o timeout"
    )
    if re.search(lost, said, re.IGNORECASE):
        return "down"
    return "fails"
