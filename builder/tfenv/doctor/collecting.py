"""All that ``tfenv doctor`` judges: the host, the network and, if asked for, a container with all GPUs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from .evidence import Evidence, Ran
from .judging import judge
from .looking import collect, docker_clients
from .reading import values
from .reading.toolkit import TRY
from .reading.words import one_line
from .sources import Sources

_TRY_LIMIT = 30.0
_NO_GPU = ("no-gpu", "no-gpu-in-wsl")


def look(
    sources: Sources, ask: Callable[[Mapping[str, str]], dict[str, str]] | None, *, try_gpus: bool = False
) -> Evidence:
    """All that is to be judged; the network is asked while the host is looked at.

    Args:
        ask: asks the network; None leaves it alone.
        try_gpus: run ``true`` in an image that the engine has, with all GPUs; not without a GPU. No image is
            ever pulled.
    """
    network: dict[str, str] = {}

    def work() -> None:
        if ask:
            network.update(ask(sources.env))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    evidence = collect(sources)
    if try_gpus:
        ran = Ran(skipped="there is no GPU") if _without_gpu(evidence) else tried(sources)
        evidence = replace(evidence, commands={**evidence.commands, TRY: ran})
    thread.join(5)
    return replace(evidence, network=dict(network))


def told_of_try(evidence: Evidence) -> str:
    """What came of trying, in words."""
    ran = evidence.command(TRY)
    if ran.skipped or not ran.there:
        return f"--try: nothing was run: {ran.skipped or 'there is no Docker client'}"
    if ran.ok:
        return "--try: a container with --gpus all runs"
    return f"--try: a container with --gpus all does not run: {one_line(ran.said, 240)}"


def _without_gpu(evidence: Evidence) -> bool:
    return any(one.id in _NO_GPU for one in judge(values(evidence)).found)


def tried(sources: Sources) -> Ran:
    """How a container with all GPUs ends, in the first image of the engine that has a ``true``."""
    clients = docker_clients(sources)
    if not clients:
        return Ran()
    listed = sources.run((clients[0], "image", "ls", "--format", "{{.Repository}}:{{.Tag}}"), 10)
    images = [name for name in listed.out.split() if "<none>" not in name]
    images.sort(key=lambda name: not name.startswith("tfenv:"))
    for image in images[:3]:
        # No network, nothing kept; --pull never: an image that is not there is not fetched.
        argv = (clients[0], "run", "--rm", "--pull", "never", "--network", "none", "--gpus", "all")
        ran = sources.run((*argv, "--entrypoint", "/bin/true", image), _TRY_LIMIT)
        if (
            "executable file not found" not in ran.err
            and "no such file or directory" not in ran.err.split("/bin/true")[-1]
        ):
            return ran
    return Ran(skipped="the engine has no image to try it with")
