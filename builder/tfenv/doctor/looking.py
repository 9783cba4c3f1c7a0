"""Looking at a host: what is looked at is in ``table``; nothing is changed, ever, see ``careful``."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from . import keeping
from .careful import SKIPPED_ASLEEP, engine_asleep, why_not_ask
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
    NODES,
    PCI_FILES,
    SET,
    SHORT,
    SPACES,
    UNITS,
    Command,
)
from .together import together

WHOLE = 25.0  # seconds for all
_INFO = ("info", "--format", "{{json .}}")


def collect(sources: Sources, whole: float = WHOLE, *, ask_anyway: bool = False) -> Evidence:
    """Look at a host, for ``whole`` seconds at most. Never raises, changes nothing.

    Args:
        ask_anyway: nvidia-smi is asked even where it may load the module or make device nodes.
    """
    end = time.monotonic() + whole
    files, links, nodes = _files(sources), _links(sources), _nodes(sources)
    files.update(_pci(sources, files))
    skip = "" if ask_anyway else why_not_ask(files, nodes, sources.env)
    plain = {
        " ".join(command.argv): _task(sources, command)
        for command in COMMANDS
        if not (command.driver and skip)
    }
    commands = together(plain, end)
    if skip:
        commands.update({" ".join(c.argv): Ran(skipped=skip) for c in COMMANDS if c.driver})
    commands.update(together(_docker(sources, commands), end))
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


def docker_clients(sources: Sources) -> tuple[str, ...]:
    """The docker clients on PATH, first one first; $TFENV_DOCKER alone where it is set."""
    if chosen := sources.env.get("TFENV_DOCKER"):
        return (chosen,)
    folders = [*filter(None, sources.env.get("PATH", "").split(os.pathsep)), "/usr/bin", "/snap/bin"]
    paths = dict.fromkeys(f"{folder}/docker" for folder in folders)
    there = {sources.link(path): path for path in reversed(paths) if sources.link(path)}
    return tuple(sorted(there.values(), key=list(paths).index))[:3]


def _docker(sources: Sources, commands: Mapping[str, Ran]) -> dict[str, Callable[[], Ran]]:
    asleep = engine_asleep(commands[" ".join(UNITS.argv)].out, sources.env)
    return {
        f"{client} {' '.join(_INFO)}": _skipped
        if asleep
        else _task(sources, Command((client, *_INFO), SHORT, keeping.docker_info))
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
