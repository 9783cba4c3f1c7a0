"""The machine: system, kernel, WSL 2, a container, a Jetson."""

from __future__ import annotations

from tfenv.doctor.evidence import Evidence

from .words import find, yes


def read(of: Evidence) -> dict[str, str]:
    """``os``, ``kernel``, ``machine``, ``wsl``, ``container``, ``jetson``, ``root``, and variables."""
    version, kernel = of.file("/proc/version"), of.system.get("kernel", "")
    wsl = "microsoft" in version.lower() or "microsoft" in kernel.lower() or "/dev/dxg" in of.nodes
    one = "Microsoft" in kernel and "WSL2" not in kernel and "microsoft-standard" not in kernel.lower()
    machine = of.system.get("machine", "")
    container = bool(
        {"/.dockerenv", "/run/.containerenv", "/run/systemd/container"} & of.files.keys()
        or of.env.get("container")
        or "KUBERNETES_SERVICE_HOST" in of.env
    )
    visible = of.env.get("CUDA_VISIBLE_DEVICES")
    asked = of.env.get("NVIDIA_VISIBLE_DEVICES", "")
    return {
        "os": find(r'^PRETTY_NAME="?([^"\n]+)', of.file("/etc/os-release")),
        "os_id": find(r'^ID="?([a-z0-9._-]+)', of.file("/etc/os-release")),
        "kernel": kernel,
        "machine": machine,
        "x86": yes(machine in ("x86_64", "AMD64", "amd64")) if machine else "",
        "wsl": yes(wsl),
        "wsl1": yes(one and "/dev/dxg" not in of.nodes),
        "container": yes(container),
        "jetson": yes("/etc/nv_tegra_release" in of.files or "tegra" in kernel),
        "root": yes(of.user.get("uid") == 0) if "uid" in of.user else "",
        "visible_devices": visible if visible is not None and visible.strip() else "",
        "visible_kind": _kind(visible),
        "asked_devices": asked,
        "asked_old_mig": yes(asked.upper().startswith("MIG-GPU-")) if asked else "",
        "mps": yes(of.folders.get("/tmp/nvidia-mps") or "CUDA_MPS_PIPE_DIRECTORY" in of.env),
        "cuda_stub": yes("stubs" in of.env.get("LD_LIBRARY_PATH", "")),
        "compat_on_path": yes("/compat" in of.env.get("LD_LIBRARY_PATH", "")),
        "preload": of.env.get("LD_PRELOAD", ""),
    }


def _kind(visible: str | None) -> str:
    """What CUDA_VISIBLE_DEVICES says: unset, hidden on purpose, devices, or what CUDA does not understand."""
    if visible is None:
        return "unset"
    text = visible.strip()
    if text in ("", "-1", "none", "void", "NoDevFiles"):
        return "hidden"
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() or part.upper().startswith(("GPU-", "MIG-")) for part in parts):
        return "devices"
    return "invalid"
