"""What can be said of memory before a command runs: who holds the GPUs, and what the host has left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

QUERY = ("nvidia-smi", "--query-gpu=index,memory.used,memory.total", "--format=csv,noheader,nounits")
_SETTINGS = ("TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR")
_HELD = 0.1  # of a GPU's memory: less is the driver's own and a display
_SHM = 2 << 30  # bytes of shared memory that a container gets, see runline


@dataclass(frozen=True)
class Held:
    """A GPU's memory, in MiB: used by programs, and all of it."""

    index: str
    used: int
    total: int


def held(csv: str) -> tuple[Held, ...]:
    """The answer of ``QUERY``; lines that are none, as under MIG, are left out."""
    found = []
    for line in csv.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 3 and fields[1].isdecimal() and fields[2].isdecimal() and int(fields[2]):
            found.append(Held(fields[0], int(fields[1]), int(fields[2])))
    return tuple(found)


def wanted(of: Sequence[Held], gpus: str) -> tuple[Held, ...]:
    """Those that ``--gpus`` asks for, by their numbers; all where it does not tell."""
    value = gpus.strip("\"'")
    if not value.startswith("device="):
        return tuple(of)
    names = value.removeprefix("device=").split(",")
    named = tuple(gpu for gpu in of if gpu.index in names)
    return named or tuple(of)


def advice(gpus: Iterable[Held], environment: Sequence[str], available: int | None) -> tuple[str, ...]:
    """What to tell; nothing where all is well.

    Args:
        environment: what the container gets, as ``NAME=VALUE``.
        available: bytes of the host's memory, if known.
    """
    told = []
    busy = [gpu for gpu in gpus if gpu.used > gpu.total * _HELD]
    if busy:
        what = ", ".join(f"GPU {gpu.index}: {gpu.used} of {gpu.total} MiB" for gpu in busy)
        said = f"other programs hold GPU memory ({what}); nvidia-smi shows which."
        if not any(setting.split("=")[0] in _SETTINGS for setting in environment):
            said += (
                " TensorFlow takes all that is left at its start: -e TF_FORCE_GPU_ALLOW_GROWTH=true makes it"
                " take what it needs, a memory_limit in the program keeps it within bounds"
            )
        told.append(said)
    if available is not None and available < 2 * _SHM:
        told.append(
            f"the host has {available >> 20} MiB left: data sets that are cached, and shared memory (up to"
            f" {_SHM >> 20} MiB), come out of it; without enough the program is killed (exit code 137)"
        )
    return tuple(told)


def available(meminfo: str) -> int | None:
    """Bytes that programs can still get, from /proc/meminfo; None if it does not tell."""
    for line in meminfo.splitlines():
        name, _, rest = line.partition(":")
        number = rest.split()[:1]
        if name == "MemAvailable" and number and number[0].isdecimal():
            return int(number[0]) << 10
    return None
