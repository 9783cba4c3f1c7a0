"""What is looked at, and what is kept of it. Adding a file, a folder or a command is one line here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from . import keeping
from .keeping import Keep

SHORT, LONG = 4.0, 15.0  # seconds that a command gets
MODULE = "/proc/driver/nvidia/version"

#: path or pattern -> what is kept of it.
FILES: Mapping[str, Keep] = {
    "/etc/os-release": keeping.whole,
    "/proc/version": keeping.whole,
    "/proc/cmdline": keeping.words,
    "/proc/modules": keeping.modules,
    "/proc/devices": keeping.driver_lines,
    "/proc/mounts": keeping.mounts,
    "/proc/meminfo": keeping.meminfo,
    "/proc/self/limits": keeping.whole,
    "/proc/self/status": keeping.status,
    "/proc/1/cgroup": keeping.whole,
    "/proc/1/comm": keeping.whole,
    "/proc/sys/fs/inotify/max_user_watches": keeping.whole,
    "/proc/sys/fs/inotify/max_user_instances": keeping.whole,
    "/proc/sys/kernel/modules_disabled": keeping.whole,
    "/sys/kernel/security/lockdown": keeping.whole,
    MODULE: keeping.whole,
    "/proc/driver/nvidia/params": keeping.whole,
    "/proc/driver/nvidia/gpus/*/information": keeping.whole,
    "/sys/module/nvidia/version": keeping.whole,
    "/sys/module/nvidia_uvm/version": keeping.whole,
    "/sys/module/nvidia/parameters/NVreg_OpenRmEnableUnsupportedGpus": keeping.whole,
    "/sys/bus/pci/devices/*/vendor": keeping.whole,
    "/etc/modprobe.d/*.conf": keeping.driver_lines,
    "/etc/docker/daemon.json": keeping.daemon_json,
    "~/.config/docker/daemon.json": keeping.daemon_json,
    "~/.docker/config.json": keeping.client_json,
    "/etc/nvidia-container-runtime/config.toml": keeping.whole,
    "/etc/cdi/*": keeping.cdi,
    "/var/run/cdi/*": keeping.cdi,
    "/.dockerenv": keeping.whole,
    "/run/.containerenv": keeping.whole,
    "/run/systemd/container": keeping.whole,
    "/etc/containers/containers.conf": keeping.driver_lines,
    "/etc/nv_tegra_release": keeping.whole,
}
#: Where NVIDIA devices are asked for more.
PCI_FILES = (
    "device",
    "class",
    "subsystem_vendor",
    "subsystem_device",
    "enable",
    "current_link_width",
    "max_link_width",
)
FOLDERS = (
    "/sys/module/nvidia",
    "/proc/driver/nvidia",
    "/dev/nvidia-caps",
    "/dev/vfio",
    "/dev/dri",
    "/dev/infiniband",
    "/usr/lib/wsl/lib",
    "/usr/local/cuda/compat",
    "/usr/local/nvidia/lib64",
    "/var/lib/dkms/nvidia",
    "/etc/cdi",
    "/var/run/cdi",
    "/usr/share/nvidia",
    "/sys/class/iommu",
    "/snap/docker",
    "/tmp/nvidia-mps",
    "/sys/firmware/efi",
)
LINKS = (
    "/dev/nvidiactl",
    "/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/usr/local/cuda",
)
NODES = (
    "/dev/nvidia[0-9]*",
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/nvidia-modeset",
    "/dev/nvidia-nvswitch*",
    "/dev/nvidia-caps/*",
    "/dev/dxg",
    "/dev/vfio/*",
)
SPACES = {"root": "/", "shm": "/dev/shm", "tmp": "/tmp", "docker": "/var/lib/docker", "home": "~"}
#: Variables whose value matters, and those of which only that they are set may be told.
ENV = re.compile(
    r"CUDA_\w+|NVIDIA_\w+|NVIDIA|TF_\w+|XLA_FLAGS|NCCL_\w+|LD_LIBRARY_PATH|LD_PRELOAD|PYTHONPATH|DOCKER_HOST"
    r"|DOCKER_CONTEXT|CONTAINER_HOST|WSL_DISTRO_NAME|WSL_INTEROP|XDG_RUNTIME_DIR|VIRTUAL_ENV|CONDA_PREFIX"
    r"|CONDA_DEFAULT_ENV|container|TFENV_DOCKER|HIP_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL"
)
ENV_SET = re.compile(
    r"(https?|all|no|ftp)_proxy|(HTTPS?|ALL|NO)_PROXY|PIP_\w+|UV_\w*INDEX\w*|SSL_CERT_(FILE|DIR)"
    r"|(REQUESTS|CURL)_CA_BUNDLE|KUBERNETES_SERVICE_HOST|SLURM_JOB_ID|SINGULARITY_NAME|APPTAINER_NAME"
    r"|COLAB_\w+|KAGGLE_\w+|SUDO_USER|SSH_CONNECTION"
)
SET = "set"
#: In the place of a folder: the docker clients, the first on PATH first.
CLIENTS = "docker clients"


@dataclass(frozen=True)
class Command:
    """A command to run: seconds that it gets, what is kept of its output, and whether it needs a driver."""

    argv: tuple[str, ...]
    limit: float = SHORT
    keep: Keep = keeping.whole
    driver: bool = False


_SERVICES = (
    "docker.service",
    "docker.socket",
    "containerd.service",
    "nvidia-fabricmanager.service",
    "nvidia-persistenced.service",
    "nvidia-cdi-refresh.service",
    "snap.docker.dockerd.service",
)
UNITS = Command(
    ("systemctl", "show", "--property=Id,LoadState,ActiveState,SubState,Result,UnitFileState", *_SERVICES)
)
COMMANDS = (
    UNITS,
    Command(("nvidia-smi", "-q", "-x"), LONG, keeping.nvidia_smi, driver=True),
    Command(("nvidia-smi", "-L"), LONG, driver=True),
    Command(("nvidia-smi", "--query-gpu=index,name,compute_cap", "--format=csv,noheader"), LONG, driver=True),
    Command(("modinfo", "nvidia"), keep=keeping.fields),
    Command(("dkms", "status"), keep=keeping.driver_lines),
    Command(("mokutil", "--sb-state")),
    Command(("dmesg",), keep=keeping.driver_lines),
    Command(
        ("journalctl", "--dmesg", "--boot", "--no-pager", "--quiet", "--lines=20000"),
        keep=keeping.driver_lines,
    ),
    Command(("ldconfig", "-p"), keep=keeping.libraries),
    Command(("nvidia-ctk", "--version")),
    Command(("nvidia-container-cli", "--version")),
    Command(("nvidia-container-runtime", "--version")),
    Command(("nvidia-modprobe", "--version")),
    Command(("podman", "--version")),
    Command(("nv-fabricmanager", "--version")),
    Command(
        (
            "dpkg-query",
            "--show",
            "--showformat=${db:Status-Abbrev} ${Package} ${Version}\\n",
            "*nvidia*",
            "libcuda*",
            "cuda-drivers*",
            "docker*",
            "podman*",
            "linux-headers-*",
        ),
        keep=keeping.installed,
    ),
    Command(("rpm", "-qa", "*nvidia*", "cuda-drivers*", "docker*", "podman", "kernel-devel*")),
)
