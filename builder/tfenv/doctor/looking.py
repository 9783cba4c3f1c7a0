"""What is looked at. Adding a file, a folder or a command is one line of a table here.

Nothing is changed on the host, ever, and that has consequences:

- nvidia-smi and CUDA load the kernel module and make device nodes where those are missing (through
  nvidia-modprobe), so they are asked only where both are there;
- `docker info` starts an engine that systemd would start at first use, so a socket that nobody serves is left
  alone; `podman info` makes folders, so Podman is only asked for its version.
"""

from __future__ import annotations

import os
import platform
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from . import keeping
from .evidence import Evidence, Ran
from .keeping import Keep
from .sources import Sources

#: Seconds for all, and what one command gets.
WHOLE = 25.0
_SHORT, _LONG = 4.0, 15.0
SKIPPED_NO_MODULE = "the kernel module is not loaded: nvidia-smi would load it"
SKIPPED_NO_NODES = "device nodes are missing: nvidia-smi would make them"
SKIPPED_ASLEEP = "the engine is stopped, and asking it would start it"
_MODULE = "/proc/driver/nvidia/version"

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
    _MODULE: keeping.whole,
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
    limit: float = _SHORT
    keep: Keep = keeping.whole
    driver: bool = False


_UNITS = (
    "docker.service",
    "docker.socket",
    "containerd.service",
    "nvidia-fabricmanager.service",
    "nvidia-persistenced.service",
    "nvidia-cdi-refresh.service",
    "snap.docker.dockerd.service",
)
COMMANDS = (
    Command(
        ("systemctl", "show", "--property=Id,LoadState,ActiveState,SubState,Result,UnitFileState", *_UNITS)
    ),
    Command(("nvidia-smi", "-q", "-x"), _LONG, keeping.nvidia_smi, driver=True),
    Command(("nvidia-smi", "-L"), _LONG, driver=True),
    Command(
        ("nvidia-smi", "--query-gpu=index,name,compute_cap", "--format=csv,noheader"), _LONG, driver=True
    ),
    Command(("modinfo", "nvidia"), keep=lambda text: _fields(text)),
    Command(("dkms", "status"), keep=keeping.driver_lines),
    Command(("mokutil", "--sb-state")),
    Command(("dmesg",), keep=keeping.driver_lines),
    Command(
        ("journalctl", "--dmesg", "--boot", "--no-pager", "--quiet", "--lines=20000"),
        keep=keeping.driver_lines,
    ),
    Command(("ldconfig", "-p"), keep=lambda text: _libraries(text)),
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
        keep=lambda text: _installed(text),
    ),
    Command(("rpm", "-qa", "*nvidia*", "cuda-drivers*", "docker*", "podman", "kernel-devel*")),
)
_INFO = ("info", "--format", "{{json .}}")


def collect(sources: Sources, whole: float = WHOLE, *, ask_anyway: bool = False) -> Evidence:
    """Look at a host, for ``whole`` seconds at most. Never raises, changes nothing.

    Args:
        ask_anyway: nvidia-smi is asked even where it may load the module or make device nodes.
    """
    end = time.monotonic() + whole
    files, links, nodes = _files(sources), _links(sources), _nodes(sources)
    files.update(_pci(sources, files))
    skip = "" if ask_anyway else _why_not_ask(files, nodes, sources.env)
    plain = {
        " ".join(command.argv): _task(sources, command)
        for command in COMMANDS
        if not (command.driver and skip)
    }
    commands = _together(plain, end)
    if skip:
        commands.update({" ".join(c.argv): Ran(skipped=skip) for c in COMMANDS if c.driver})
    commands.update(_together(_docker(sources, commands), end))
    places = {**SPACES, **_docker_root(commands)}
    spaces = {name: sources.space(_home(path, sources)) for name, path in places.items()}
    folders = {path: sources.names(path) for path in FOLDERS}
    folders[CLIENTS] = list(docker_clients(sources))
    return Evidence(
        recorded=date.today().isoformat(),
        system={
            "pci": "yes" if sources.names("/sys/bus/pci/devices") else "no",
            "kernel": platform.release(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        },
        user=_user(),
        env=_env(sources.env),
        files=files,
        folders={path: names[:500] for path, names in folders.items() if names is not None},
        links=links,
        nodes=nodes,
        spaces={name: space for name, space in spaces.items() if space},
        commands=commands,
    )


def _files(sources: Sources) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for pattern, keep in FILES.items():
        path = _home(pattern, sources)
        for each in sources.matching(path) if "*" in path else (path,):
            try:
                text = sources.read(each)
            except FileNotFoundError:
                continue
            found[each] = None if text is None else keep(text)
    secure = sources.matching("/sys/firmware/efi/efivars/SecureBoot-*")
    for path in secure[:1]:
        try:
            text = sources.read(path)
        except FileNotFoundError:
            continue
        # Four bytes of attributes, then one that says whether it is on.
        found["SecureBoot"] = None if not text else ("on" if text[-1] == "\x01" else "off")
    return found


def _pci(sources: Sources, files: dict[str, str | None]) -> dict[str, str | None]:
    """What there is to know of NVIDIA's devices; other vendors' are left out."""
    suffix = "/vendor"
    found: dict[str, str | None] = {}
    for path in [path for path in files if path.startswith("/sys/bus/pci/") and path.endswith(suffix)]:
        if (files.get(path) or "").strip() != "0x10de":
            del files[path]
            continue
        folder = path[: -len(suffix)]
        for name in PCI_FILES:
            try:
                found[f"{folder}/{name}"] = sources.read(f"{folder}/{name}")
            except FileNotFoundError:
                continue
        for name in ("driver", "iommu_group"):
            if end := sources.link(f"{folder}/{name}"):
                found[f"{folder}/{name}"] = end.rsplit("/", 1)[-1]
    return found


def _links(sources: Sources) -> dict[str, str]:
    return {path: end for path in LINKS if (end := sources.link(path))}


def _nodes(sources: Sources) -> dict[str, Any]:
    found = {}
    for pattern in NODES:
        for path in sources.matching(pattern) if "*" in pattern else (pattern,):
            if node := sources.node(path):
                found[path] = node
    return found


def _why_not_ask(files: Mapping[str, str | None], nodes: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """Why nvidia-smi would change something; empty where it would not."""
    if "/dev/dxg" in nodes:  # WSL has neither module nor nodes of NVIDIA's
        return ""
    control = "/dev/nvidiactl" in nodes
    # A container sees what it was given, which may be less than there is, and loads no modules.
    if "/.dockerenv" in files or "/run/.containerenv" in files or env.get("container"):
        return "" if control else SKIPPED_NO_NODES if _MODULE in files else SKIPPED_NO_MODULE
    if _MODULE not in files:
        return SKIPPED_NO_MODULE
    numbered = [path for path in nodes if re.fullmatch(r"/dev/nvidia\d+", path)]
    known = [path for path in files if path.startswith("/proc/driver/nvidia/gpus/")]
    return SKIPPED_NO_NODES if not control or len(numbered) < len(known) else ""


def docker_clients(sources: Sources) -> tuple[str, ...]:
    """The docker clients on PATH, first one first; $TFENV_DOCKER alone where it is set."""
    if chosen := sources.env.get("TFENV_DOCKER"):
        return (chosen,)
    folders = [*filter(None, sources.env.get("PATH", "").split(os.pathsep)), "/usr/bin", "/snap/bin"]
    paths = dict.fromkeys(f"{folder}/docker" for folder in folders)
    there = {sources.link(path): path for path in reversed(paths) if sources.link(path)}
    return tuple(sorted(there.values(), key=list(paths).index))[:3]


def _docker(sources: Sources, commands: Mapping[str, Ran]) -> dict[str, Callable[[], Ran]]:
    asleep = False
    for text in commands[" ".join(COMMANDS[0].argv)].out.split("\n\n"):
        if "Id=docker.service" in text and "LoadState=loaded" in text:
            asleep = "ActiveState=inactive" in text
    if asleep and not sources.env.get("DOCKER_HOST"):
        return {f"{client} {' '.join(_INFO)}": _skipped for client in docker_clients(sources)}
    return {
        f"{client} {' '.join(_INFO)}": _task(sources, Command((client, *_INFO), _SHORT, keeping.docker_info))
        for client in docker_clients(sources)
    }


def _skipped() -> Ran:
    return Ran(skipped=SKIPPED_ASLEEP)


def _docker_root(commands: Mapping[str, Ran]) -> dict[str, str]:
    for line, ran in commands.items():
        root = re.search(r'"DockerRootDir": "(/[^"]+)"', ran.out) if line.endswith(" ".join(_INFO)) else None
        if root:
            return {"docker": root[1]}
    return {}


def _task(sources: Sources, command: Command) -> Callable[[], Ran]:
    def do() -> Ran:
        ran = sources.run(command.argv, command.limit)
        return Ran(ran.status, command.keep(ran.out), keeping.whole(ran.err))

    return do


def _together(tasks: Mapping[str, Callable[[], Ran]], end: float) -> dict[str, Ran]:
    """All at once. A thread that hangs is left behind: one of a pool would be waited for at the end."""
    done: queue.SimpleQueue[tuple[str, Ran]] = queue.SimpleQueue()

    def work(name: str, task: Callable[[], Ran]) -> None:
        try:
            done.put((name, task()))
        except Exception as error:  # whatever a source does, the others are answered
            done.put((name, Ran(126, err=type(error).__name__)))

    for name, task in tasks.items():
        threading.Thread(target=work, args=(name, task), daemon=True).start()
    found: dict[str, Ran] = {}
    while len(found) < len(tasks) and (left := end - time.monotonic()) > 0:
        try:
            name, ran = done.get(timeout=left)
        except queue.Empty:
            break
        found[name] = ran
    return {name: found.get(name, Ran(124)) for name in tasks}


def _env(env: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value[:2000] for name, value in env.items() if ENV.fullmatch(name)}
    return {**kept, **{name: SET for name, value in env.items() if value and ENV_SET.fullmatch(name)}}


def _user() -> dict[str, Any]:
    import grp

    names = []
    for group in sorted({os.getegid(), *os.getgroups()}):
        try:
            names.append(grp.getgrgid(group).gr_name)
        except KeyError:
            names.append(str(group))
    return {"uid": os.getuid(), "gid": os.getgid(), "groups": names}


def _home(path: str, sources: Sources) -> str:
    return sources.env.get("HOME", "/root") + path[1:] if path.startswith("~") else path


def _fields(text: str) -> str:
    wanted = ("filename:", "version:", "license:", "signer:", "vermagic:", "sig_id:", "firmware:")
    return "\n".join(line for line in text.splitlines() if line.startswith(wanted))


def _libraries(text: str) -> str:
    wanted = re.compile(r"libcuda\.so|libnvidia-ml\.so|libcudart\.so|libcudnn\.so|libcublas\.so|libnccl\.so")
    return "\n".join([line for line in text.splitlines() if wanted.search(line)][:60])


def _installed(text: str) -> str:
    return "\n".join([line for line in text.splitlines() if line[1:2] in "iFUH"][:400])
