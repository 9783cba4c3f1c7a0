"""Whether this container was given GPUs, and may use them."""

from __future__ import annotations

import re
from typing import Optional

from .finding import DOCS, Facts, Finding, count, cuda, found


def hidden_by_name(of: Facts) -> Optional[Finding]:
    """NVIDIA_VISIBLE_DEVICES says none."""
    value = of["env"].get("NVIDIA_VISIBLE_DEVICES")
    if of["nodes"] or value is None or value.strip() not in ("", "void", "none"):
        return None
    return found(
        "broken",
        f"NVIDIA_VISIBLE_DEVICES is '{value}': this container asked for no GPU",
        "The runtime gives a container the GPUs that this variable names: none here.",
        "start it with --gpus all, or with NVIDIA_VISIBLE_DEVICES=all",
        DOCS,
    )


def old_mig_id(of: Facts) -> Optional[Finding]:
    """MIG-GPU-... ids of drivers before 470."""
    value = of["env"].get("NVIDIA_VISIBLE_DEVICES", "") + of["env"].get("CUDA_VISIBLE_DEVICES", "")
    if "MIG-GPU-" not in value.upper() or count(of):
        return None
    there = re.findall(r"UUID: (MIG-[0-9A-Za-z/-]+)", of["smi"])
    return found(
        "broken",
        "a MIG device is asked for by an id of the old form (MIG-GPU-.../gi/ci)",
        "Drivers from 470 on name MIG devices MIG-<uuid>.",
        "take the id that nvidia-smi -L shows" + (f": {', '.join(there[:8])}" if there else " on the host"),
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/203",
    )


def no_gpu_given(of: Facts) -> Optional[Finding]:
    """No node, no library: the container was started without a GPU, or there is none."""
    if of["nodes"] or cuda(of).get("missing") is None or hidden_by_name(of):
        return None
    host = of.get("host", {})
    if of["module"] or host.get("gpus") or of["bus"]:
        unset = "NVIDIA_VISIBLE_DEVICES" not in of["env"]
        driver = of["module"] or host.get("driver", "")
        seen = (
            f"the host has a driver, {driver}"
            if driver
            else "the host has an NVIDIA GPU, and no driver is loaded"
        )
        if not driver:
            return found(
                "broken",
                "the host has an NVIDIA GPU, and no NVIDIA driver is loaded there",
                "The driver is the host's (or the VM's), never the image's: CUDA in the image cannot "
                "replace it.",
                "on the host: install the driver, see that nvidia-smi works there, then start this "
                "again with --gpus all",
                "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/index.html",
            )
        return found(
            "broken",
            "this container was started without a GPU",
            f"{seen[:1].upper()}{seen[1:]}; in here there is neither a device node nor libcuda"
            + (
                ", and NVIDIA_VISIBLE_DEVICES is not set, by which some runtimes (enroot, older "
                "Docker) decide."
                if unset
                else "."
            ),
            "start it with --gpus all (Podman: --device nvidia.com/gpu=all; Singularity: --nv; "
            "enroot and others: "
            "NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
            DOCS,
        )
    why = (
        "no NVIDIA GPU is on the bus"
        if of["bus"] == 0
        else "nothing of an NVIDIA GPU or driver is seen from here"
    )
    return found(
        "absent",
        "there is no GPU in here",
        f"{why[:1].upper()}{why[1:]}: the machine (or the VM) has none, or its driver is not loaded.",
        "on the host: nvidia-smi; if it works there, start this container with --gpus all",
        "https://github.com/apptainer/singularity/issues/776",
    )


def no_rights(of: Facts) -> Optional[Finding]:
    """Device nodes that cannot be opened."""
    refused = {path: why for path, why in of["nodes"].items() if why in ("EPERM", "EACCES")}
    if not refused or count(of):
        return None
    names = ", ".join(sorted(refused))
    if "EPERM" in refused.values():
        return found(
            "broken",
            f"the device files are here, and this container has no right to use them: {names}",
            "Its control group forbids it: 'systemctl daemon-reload' on the host took the devices "
            "away, or the toolkit "
            "runs with no-cgroups = true under an engine that is not rootless. nvidia-smi says "
            "'Unknown Error'.",
            "start the container anew; for good: CDI (--device nvidia.com/gpu=all), or no-cgroups = false in "
            "/etc/nvidia-container-runtime/config.toml on the host",
            "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48",
        )
    return found(
        "broken",
        f"user {of['user'].get('uid')} may not open {names}",
        "Their mode is for a group only, that this user is not in. As root the GPU is seen.",
        "docker run --group-add with the number of the group that ls -ln /dev/nvidia0 shows",
        DOCS,
    )


def no_compute(of: Facts) -> Optional[Finding]:
    """The driver's libraries for computing were not asked for."""
    asked = of["env"].get("NVIDIA_DRIVER_CAPABILITIES")
    if cuda(of).get("missing") is None or not of["nodes"]:
        return None
    if asked is not None and not {"compute", "all"} & {word.strip() for word in asked.split(",")}:
        return found(
            "broken",
            f"NVIDIA_DRIVER_CAPABILITIES is '{asked}': libcuda was not asked for",
            "nvidia-smi works with 'utility' alone; TensorFlow needs 'compute'.",
            "set NVIDIA_DRIVER_CAPABILITIES=compute,utility, in the image or with docker run -e",
            DOCS,
        )
    return found(
        "broken",
        "the GPU's device nodes are here, and the driver's libcuda.so.1 is not",
        "The nodes were given by hand (--device /dev/nvidia0), or the runtime could not bring the libraries"
        + (": under WSL 2 they are in /usr/lib/wsl/lib." if of["wsl"] else "."),
        "start the container with --gpus all, not with --device /dev/nvidia*"
        + (
            "; under WSL 2 add -v /usr/lib/wsl:/usr/lib/wsl and LD_LIBRARY_PATH=/usr/lib/wsl/lib"
            if of["wsl"]
            else ""
        ),
        DOCS,
    )


def visible_devices(of: Facts) -> Optional[Finding]:
    """CUDA_VISIBLE_DEVICES hides all GPUs."""
    value = of["env"].get("CUDA_VISIBLE_DEVICES")
    if value is None or count(of) or "MIG-GPU-" in value.upper():
        return None
    text = value.strip()
    if text in ("", "-1", "none", "NoDevFiles"):
        return found(
            "broken",
            f"CUDA_VISIBLE_DEVICES is '{value}': every GPU is hidden, on purpose it seems",
            "An empty value or -1 is the usual way to compute on the CPU.",
            "unset CUDA_VISIBLE_DEVICES",
            "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html",
        )
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not part.isdigit() and not part.upper().startswith(("GPU-", "MIG-"))]
    beyond = [part for part in parts if part.isdigit() and of["gpu_nodes"] and int(part) >= of["gpu_nodes"]]
    if not wrong and not (beyond and beyond[0] == parts[0]):
        return None
    return found(
        "broken",
        f"CUDA_VISIBLE_DEVICES is '{value[:80]}', which names no GPU in here",
        "CUDA takes numbers from 0 on and ids (GPU-..., MIG-...), and hides all from the "
        "first that it does not know. In "
        "a container the GPUs are numbered anew from 0.",
        "unset it, or set it to a number that nvidia-smi -L shows in here",
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html",
    )


def uvm(of: Facts) -> Optional[Finding]:
    """No /dev/nvidia-uvm."""
    if "/dev/nvidiactl" not in of["nodes"] or "/dev/nvidia-uvm" in of["nodes"] or of["wsl"] or count(of):
        return None
    return found(
        "broken",
        "/dev/nvidia-uvm is missing in here: CUDA cannot start, though nvidia-smi works",
        "The module nvidia-uvm was not loaded on the host when the container was started, or when its CDI "
        "specification was made.",
        "on the host: sudo nvidia-modprobe -u -c=0 (and nvidia-ctk cdi generate, with CDI), "
        "then start the container anew",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html",
    )
