"""The right `docker run` line for an image, as a pure function of what was asked and what is here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from tfenv.engine import Run
from tfenv.errors import UsageError

CACHE_VOLUME = "tfenv-cache"  # and the user id
CACHE_FOLDER = "/home/tfenv/.cache"
WORKSPACE = "/workspace"
IMAGE_USER = 1000
# TensorFlow's input pipeline and NCCL share memory between processes: Docker's 64 MB break both.
SHM_SIZE = "2g"
STACK = 67108864  # bytes
NO_GPU = "no NVIDIA GPU here: running on the CPU (`--gpus all` insists on one)"


class ImageMissingError(UsageError):
    """The engine does not have the cell's image."""


def first_image(images: Sequence[str], cell: str, docker: str, run: Run) -> str:
    """The first of ``images`` that the engine has; ``docker`` is the client.

    Raises:
        ImageMissingError: it has none.
    """
    for image in images:
        if run([docker, "image", "inspect", image]).returncode == 0:
            return image
    raise ImageMissingError(f"there is no image {images[0]} here", remedy=f"type: tfenv build {cell}")


def gpu_here(
    succeeds: Callable[[Sequence[str]], bool], exists: Callable[[str], bool] = lambda p: Path(p).exists()
) -> bool:
    """Is an NVIDIA GPU usable? The driver's device node says so, or nvidia-smi (as under WSL 2)."""
    return exists("/dev/nvidiactl") or succeeds(["nvidia-smi", "-L"])


def choose_gpus(asked: str, here: bool) -> tuple[str | None, str]:
    """(what to give to ``--gpus``, what to tell the user).

    Args:
        asked: ``auto`` takes all GPUs where there is one, ``none`` takes none; anything else
            (``all``, ``2``, ``device=0,1``) is passed on even where no GPU was found.
    """
    if asked == "none":
        return None, ""
    if asked != "auto":
        return asked, ""
    return ("all", "") if here else (None, NO_GPU)


def run_argv(
    image: str,
    *,
    docker: str = "docker",
    gpus: str | None = None,
    tty: bool = False,
    interactive: bool = False,
    user: tuple[int, int] | None = None,
    rootless: bool = False,
    read_only: bool = False,
    workdir: Path | None = None,
    mounts: Sequence[str] = (),
    ports: Sequence[str] = (),
    environment: Sequence[str] = (),
    command: Sequence[str] = (),
) -> list[str]:
    """The argument list that runs ``command`` in ``image``.

    Args:
        gpus: value of ``--gpus``, from ``choose_gpus``.
        user: (uid, gid) of the caller, so that new files in ``workdir`` are the caller's.
        rootless: the engine runs as the caller, who is root inside its containers.
        workdir: host folder seen as /workspace, the working directory there.
        mounts: ``-v`` values; ports: ``-p`` values; environment: ``-e`` values.
    """
    # An image is built here, or is not here: no registry is asked for one of that name.
    argv = [docker, "run", "--rm", "--pull=never"]
    if tty:
        argv += ["-it"]
    elif interactive:
        argv += ["-i"]
    if gpus:
        argv += ["--gpus", _gpus_value(gpus)]
        # NCCL pins memory. Not without a GPU: an engine without the right to raise it starts nothing then.
        argv += ["--ulimit", "memlock=-1"]
    argv += [f"--shm-size={SHM_SIZE}", "--ulimit", f"stack={STACK}"]
    if read_only:
        argv += ["--read-only", "--tmpfs", "/tmp:rw,exec,mode=1777"]
    if user:
        uid, gid = (0, 0) if rootless else user
        argv += ["--user", f"{uid}:{gid}"]
    # Kernels compiled at first use are kept here: the next container does not wait for them.
    # A volume for each user: what another one's containers wrote is theirs.
    owner = user[0] if user else IMAGE_USER
    argv += ["-v", f"{CACHE_VOLUME}-{owner}:{CACHE_FOLDER}"]
    if workdir:
        argv += ["--mount", f"type=bind,{_mount_field('source', workdir)},target={WORKSPACE}"]
        argv += ["-w", WORKSPACE]
    for variable in environment:
        argv += ["-e", variable]
    for mount in mounts:
        argv += ["-v", mount]
    for port in ports:
        argv += ["-p", port]
    return [*argv, image, *command]


def _gpus_value(gpus: str) -> str:
    # docker reads this option as CSV: a list of devices needs quotes of its own. With other keys it is CSV.
    listed = gpus.startswith("device=") and "," in gpus and not re.search(",[a-z]+=", gpus)
    return f'"{gpus}"' if listed else gpus


def _mount_field(key: str, path: Path) -> str:
    text = f"{key}={path}"
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def quoted(argv: Sequence[str]) -> str:
    """``argv`` as one line for a shell."""
    return shlex.join(argv)
