"""Whether a set of CUDA libraries serves a release, and how it differs from what it was compiled for.

TensorFlow opens libraries by soname, so the major version has to be the same. Within it newer ones
serve older programs, not the other way round. cuDNN is checked by TensorFlow itself when it is loaded:
``IsSourceCompatibleWithCudnnLibrary`` in cuda_dnn.cc. Versions are compared as far as both go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfenv.factfiles import read

if TYPE_CHECKING:
    from tfenv.facts import Compiled

_MINOR = 2


def why_not_served(facts: Compiled, *, cuda: str, cudnn: str) -> str | None:
    """Why libraries of these versions do not serve a release; None if they do.

    Args:
        facts: what the release was compiled for.
        cuda: version of the libraries, e.g. ``11.8`` or ``12.5.1``; empty if there are none to judge.
        cudnn: the same of cuDNN, e.g. ``8.6`` or ``9.3.0.75``.
    """
    return why_not_cuda(facts, cuda) or why_not_cudnn(facts, cudnn)


def why_not_cuda(facts: Compiled, cuda: str) -> str | None:
    """Why CUDA libraries of this version do not serve a release; None if they do."""
    if not cuda:
        return None
    wanted, given = _numbers(facts.cuda, cuda)
    who = f"TensorFlow {facts.tensorflow} was compiled for CUDA {facts.cuda}"
    if wanted[0] != given[0]:
        return (
            f"{who} and opens the libraries of CUDA {wanted[0]} by name; those of CUDA {cuda} do not serve it"
        )
    if given[:_MINOR] < wanted[:_MINOR]:
        return f"{who}; the libraries of CUDA {cuda} are older"
    for only, row in read("sonames")["only_in"]["rows"].items():
        mine, theirs = _numbers(only, facts.cuda)[:2], _numbers(only, cuda)
        if mine[0] == mine[1] and theirs[0] != theirs[1]:
            return (
                f"{who} and opens {row['soname']}, which CUDA {cuda} does not have (it has {row['others']})"
            )
    return None


def why_not_cudnn(facts: Compiled, cudnn: str) -> str | None:
    """Why a cuDNN of this version does not serve a release; None if it does."""
    if not cudnn:
        return None
    wanted, given = _numbers(facts.cudnn, cudnn)
    who = f"TensorFlow {facts.tensorflow} was compiled with cuDNN {facts.cudnn}"
    if wanted[0] != given[0]:
        return f"{who} and opens libcudnn.so.{wanted[0]}; cuDNN {cudnn} is another major version"
    if given[:_MINOR] < wanted[:_MINOR]:
        return f"{who} and refuses one whose minor version is lower; here it is {cudnn}"
    return None


def differs(facts: Compiled, *, cuda: str, cudnn: str) -> str | None:
    """How a set that serves a release differs from what it was compiled for, in a plain sentence.

    Returns:
        None where nothing differs, as far as both versions go.
    """
    pairs = (("CUDA", facts.cuda, cuda), ("cuDNN", facts.cudnn, cudnn))
    other = [(name, mine, theirs) for name, mine, theirs in pairs if theirs and not _same(mine, theirs)]
    if not other:
        return None
    mine = " and ".join(f"{name} {version}" for name, version, _ in other)
    theirs = " and ".join(f"{name} {version}" for name, _, version in other)
    return (
        f"TensorFlow {facts.tensorflow} was compiled for {mine} and runs with {theirs}: "
        "the same major version, and not an older minor one"
    )


def _same(mine: str, theirs: str) -> bool:
    left, right = _numbers(mine, theirs)
    return left == right


def _numbers(left: str, right: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Both versions as numbers, cut to the precision that both give."""
    one, two = (tuple(int(part) for part in text.split(".")) for text in (left, right))
    shared = min(len(one), len(two))
    return one[:shared], two[:shared]
