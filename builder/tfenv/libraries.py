"""Which libraries an environment opens at run time, by what TensorFlow was compiled for and what it gets.

TensorFlow asks for the sonames of the CUDA that it was compiled for; the libraries that it then gets ask for
those of their own version. So a release compiled for CUDA 11.2 opens ``libcupti.so.11.2`` and, through the
libraries of CUDA 11.8, ``libnvrtc.so.11.2``. No version number is in this code.
"""

from __future__ import annotations

from typing import Any

from tfenv import factfiles
from tfenv.errors import UsageError
from tfenv.facts import Compiled, Library
from tfenv.versions import major, minor, order


def opened(compiled: Compiled, *, cuda: str, cudnn: str) -> tuple[Library, ...]:
    """The libraries that a release opens with a set of CUDA libraries, or that these open in turn.

    Args:
        cuda: version of the CUDA libraries that are there, e.g. ``11.8``; cudnn: the same of cuDNN.

    Raises:
        UsageError: nothing is known of that version.
    """
    of_tensorflow = _of("cuda", compiled.cuda)
    of_set = _of("cuda", cuda)
    mine = {name: of_tensorflow[name] if _by_tensorflow(e) else e for name, e in of_set.items()}
    found = [_filled(entry, cuda, compiled.cuda) for entry in mine.values()]
    found += [_filled(entry, cuda, compiled.cuda) for entry in _of("cudnn", cudnn).values()]
    if compiled.nccl_how == "loaded":
        found += [_filled(entry, cuda, compiled.cuda) for entry in _facts()["nccl"]["loaded"]]
    return tuple(found)


def with_wheel(cuda: str) -> tuple[Library, ...]:
    """The libraries that are opened where they are, and not missed where they are not."""
    return tuple(_filled(entry, cuda, cuda) for entry in _facts()["with_wheel"].get(major(cuda), ()))


def only_by_wheel() -> frozenset[str]:
    """The names of the libraries that an nvidia/cuda image lacks, so that only a wheel brings them."""
    return frozenset(entry["name"] for entry in _facts()["only_by_wheel"]["any"])


def _of(kind: str, version: str) -> dict[str, Any]:
    """By name what is known of a major version, with what differs in that very minor one."""
    known = _facts()[kind]
    if major(version) not in known:
        raise UsageError(
            f"the libraries of {kind} {version} are not known",
            remedy=f"known: {', '.join(sorted(known, key=order))}; "
            "add them to builder/tfenv/facts/libraries.json",
        )
    entries = [*known[major(version)], *known.get(minor(version), ())]
    return {entry["name"]: entry for entry in entries}


def _by_tensorflow(entry: dict[str, Any]) -> bool:
    return bool(entry["opened_by"] == "tensorflow")


def _filled(entry: dict[str, Any], cuda: str, compiled: str) -> Library:
    wheel = entry["wheel"].format(cuda=major(cuda))
    return Library(**{**entry, "wheel": wheel, "soname": entry["soname"].format(cuda=minor(compiled))})


def _facts() -> Any:
    return factfiles.read("libraries")
