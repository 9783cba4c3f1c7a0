"""Looking at a host. What is looked at is in ``table``.

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
from datetime import date
from typing import Any

from . import keeping
from .evidence import Evidence, Ran
from .sources import Sources
from .table import (
    CLIENTS,
    COMMANDS,
    ENV,
    ENV_SET,
    FILES,
    FOLDERS,
    LINKS,
    MODULE,
    NODES,
    PCI_FILES,
    SET,
    SHORT,
    SPACES,
    Command,
)

WHOLE = 25.0  # seconds for all
SKIPPED_NO_MODULE = "the kernel module is not loaded: nvidia-smi would load it"
SKIPPED_NO_NODES = "device nodes are missing: nvidia-smi would make them"
SKIPPED_ASLEEP = "the engine is stopped, and asking it would start it"
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
        return "" if control else SKIPPED_NO_NODES if MODULE in files else SKIPPED_NO_MODULE
    if MODULE not in files:
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
        f"{client} {' '.join(_INFO)}": _task(sources, Command((client, *_INFO), SHORT, keeping.docker_info))
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
