"""The NVIDIA Container Toolkit: installed, known to the engine, its mode, and CDI specifications."""

from __future__ import annotations

import re

from tfenv.doctor.evidence import Evidence
from tfenv.engine.requirements import minimum, version_of

from .engine import info
from .words import VERSION, find, listed, one_line, parsed, short_lines, yes

_CONFIG = "/etc/nvidia-container-runtime/config.toml"
TRY = "docker run --gpus all"


def read(of: Evidence) -> dict[str, str]:
    """``toolkit``, ``runtime_known``, ``runtime_written``, ``toolkit_mode``, ``cdi_*``, ``tried``."""
    told = info(of)
    runtimes = told.get("Runtimes")
    names = list(runtimes) if isinstance(runtimes, dict) else []
    written = next(
        (text for path in of.files if path.endswith("docker/daemon.json") and (text := of.file(path))), ""
    )
    daemon = parsed(written)
    config = of.file(_CONFIG)
    tools = [
        of.command(f"{name} --version")
        for name in ("nvidia-ctk", "nvidia-container-cli", "nvidia-container-runtime")
    ]
    version = next(
        (v for ran in tools if (v := find(r"(?:version:?|CLI version) +v?(\d+\.\d+\.\d+\S*)", ran.out))), ""
    )
    features = daemon.get("features")
    specs = _specs(of)
    found = sorted(
        {v for text in specs.values() for v in re.findall(rf"libcuda\.so\.({VERSION})", text)}, key=version_of
    )
    devices = sorted(
        {d for text in specs.values() for d in re.findall(r"name\"?: *\"?([\w:.-]+)", text)} - {"all"}
    )
    tried = of.command(TRY)
    cdi_by_default = minimum("cdi").reached_by(str(told.get("ServerVersion", "")))
    turned_on = isinstance(features, dict) and features.get("cdi") is True
    turned_off = isinstance(features, dict) and features.get("cdi") is False
    return {
        "toolkit": yes(any(ran.there and ran.status != 126 for ran in tools)) if _asked(of) else "",
        "toolkit_version": version.rstrip(","),
        "toolkit_old_packages": yes(_package(of, r"nvidia-docker2?")),
        "runtime_known": yes("nvidia" in names) if told else "",
        "runtime_default": yes(told.get("DefaultRuntime") == "nvidia") if told else "",
        "runtime_written": yes("nvidia" in (daemon.get("runtimes") or {})) if written else "no",
        "daemon_json_broken": yes(written.strip() and not daemon and written.strip() != "{}"),
        "toolkit_mode": find(r'^[ \t]*mode *= *"?(\w+)', config),
        "no_cgroups": yes(re.search(r"^[ \t]*no-cgroups *= *true", config, re.MULTILINE)),
        "envvar_refused": yes(
            re.search(
                r"^[ \t]*accept-nvidia-visible-devices-envvar-when-unprivileged *= *false",
                config,
                re.MULTILINE,
            )
        ),
        "cdi_specs": listed([path.rsplit("/", 1)[-1] for path in specs]),
        "cdi_count": str(len(specs)),
        "cdi_driver": found[-1] if found else "",
        "cdi_devices": listed(devices, 8),
        "cdi_twice": yes(len([text for text in specs.values() if "nvidia.com/gpu" in text]) > 1),
        "cdi_in_engine": yes(not turned_off and (turned_on or cdi_by_default)) if told else "",
        "tried": _tried(short_lines(tried.said), tried.status) if tried.there or tried.skipped else "",
        "tried_said": one_line(tried.said, 240) if tried.there and not tried.ok else "",
        "fabric_manager": _unit(of, "nvidia-fabricmanager.service"),
        "fabric_manager_version": find(rf"({VERSION})", of.command("nv-fabricmanager --version").said),
        "persistenced": _unit(of, "nvidia-persistenced.service"),
    }


def _asked(of: Evidence) -> bool:
    return any(line.startswith("nvidia-ctk") for line in of.commands)


def _specs(of: Evidence) -> dict[str, str]:
    return {
        path: of.file(path)
        for path in of.files
        if path.startswith(("/etc/cdi/", "/var/run/cdi/")) and "nvidia" in path
    }


def _package(of: Evidence, name: str) -> bool:
    listed_ = "\n".join(
        ran.out for line, ran in of.commands.items() if line.startswith(("dpkg-query", "rpm -qa"))
    )
    return bool(re.search(rf"^(?:ii +)?{name}[ -]", listed_, re.MULTILINE))


def _tried(said: str, status: int) -> str:
    if status == 0:
        return "ok"
    for state, pattern in (
        ("no-image", r"No such image|Unable to find image"),
        ("no-toolkit", r"could not select device driver|unknown or invalid runtime name"),
        ("requirement", r"requirement error|unsatisfied condition"),
        ("mismatch", r"version mismatch"),
        ("no-nodes", r"nvml error: (?:driver not loaded|unknown error)|no such file or directory: .*nvidia"),
        ("cgroup", r"bpf_prog_query|cgroup subsystem devices not found|failed to get device cgroup"),
        ("ldcache", r"ldcache error|libnvidia-ml\.so\.1: cannot open|load library failed"),
    ):
        if re.search(pattern, said, re.IGNORECASE):
            return state
    return "fails"


def _unit(of: Evidence, name: str) -> str:
    """``missing``, ``active``, ``failed``, ``inactive``; empty where systemd did not say."""
    shown = next((ran for line, ran in of.commands.items() if line.startswith("systemctl show")), None)
    if shown is None or not shown.ok:
        return ""
    for block in shown.out.split("\n\n"):
        if f"Id={name}" in block.splitlines():
            if "LoadState=loaded" not in block:
                return "missing"
            return find(r"^ActiveState=(\w+)", block)
    return ""
