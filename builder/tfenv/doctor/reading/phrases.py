"""Values that are sentences of others, and numbers of the facts that findings compare with."""

from __future__ import annotations

from collections.abc import Mapping

from tfenv.engine.requirements import minimum


def phrases(of: Mapping[str, str]) -> dict[str, str]:
    """What layers say of themselves; empty where there is nothing to say."""
    return {name: value for name, value in (_state(of) | _engine(of) | _network(of)).items() if value}


def _state(of: Mapping[str, str]) -> dict[str, str]:
    parts = ["nvidia-smi answers"]
    if of.get("mig_on") == "yes":
        parts.append(f"MIG with {of.get('mig_devices', '0')} device(s)")
    if of.get("fabric_state") == "Completed" or of.get("fabric_manager") == "active":
        parts.append("NVLink fabric ready")
    if of.get("xids"):
        parts.append(f"Xid {of['xids']} since boot")
    elif of.get("kernel_log") == "yes":
        parts.append("no Xid since boot")
    else:
        parts.append("kernel log not readable for this user")
    switches = of.get("nvswitches", "0")
    open_ = of.get("module_open")
    return {
        "state_in_words": ", ".join(parts) if of.get("smi") == "ok" else "",
        "nvswitches_in_words": f"NVSwitches: {switches}" if switches not in ("", "0") else "",
        "module_kind": {"yes": "open kernel module", "no": "proprietary kernel module"}.get(open_ or "", ""),
        "nodes_in_words": _nodes(of),
        "bus_in_words": _bus(of),
        "shm_in_words": _shared(of.get("shm_mb", "")),
    }


def _nodes(of: Mapping[str, str]) -> str:
    if of.get("dxg") == "yes":
        return "/dev/dxg of WSL 2"
    uvm = ", with nvidia-uvm" if of.get("node_uvm") == "yes" else ""
    return f"{of['nodes_gpu']} of /dev/nvidia*{uvm}" if of.get("nodes_gpu") else ""


def _bus(of: Mapping[str, str]) -> str:
    if of.get("wsl") == "yes":
        return "what Windows gives WSL 2"
    count = of.get("pci_gpus", "0")
    return f"{count} NVIDIA GPU{'' if count == '1' else 's'} on the bus" if count not in ("", "0") else ""


def _shared(megabytes: str) -> str:
    if not megabytes:
        return ""
    size = int(megabytes)
    return f"{size // 1000} GB of shared memory" if size >= 10_000 else f"{size} MB of shared memory"


def _engine(of: Mapping[str, str]) -> dict[str, str]:
    kinds = [
        words
        for name, wanted, words in (
            ("rootless", "yes", "rootless"),
            ("docker_desktop", "yes", "Docker Desktop"),
            ("snap_docker", "yes", "a snap"),
            ("buildx", "yes", "buildx"),
            ("containerd_store", "yes", "containerd image store"),
        )
        if of.get(name) == wanted
    ]
    inside = of.get("container") == "yes" and of.get("engine") == "missing"
    elsewhere = of.get("docker_host", "")
    return {
        "in_container": ": it is the host's" if inside else "",
        "engine_kind": ", ".join(kinds),
        "engine_minimum": minimum("engine").version,
        "containerd_line": '{"features": {"containerd-snapshotter": true}}',
        "engine_elsewhere": "yes" if elsewhere.startswith(("tcp://", "ssh://", "http")) else "no",
        "tried_in_words": "a container with --gpus all runs" if of.get("tried") == "ok" else "",
    }


def _network(of: Mapping[str, str]) -> dict[str, str]:
    words = {"ok": "answers", "none": "is not to be asked", "offline": "was not reached"}
    asked = (("package index", "index"), ("Debian mirror", "mirror"), ("registry", "registry"))
    parts = [f"{name} {words.get(of[key], of[key])}" for name, key in asked if of.get(key)]
    if of.get("proxied") == "yes":
        parts.append("through a proxy")
    if of.get("own_ca") == "yes":
        parts.append("with certificates of your own")
    return {"network_in_words": ", ".join(parts) if of.get("index") else "not asked"}
