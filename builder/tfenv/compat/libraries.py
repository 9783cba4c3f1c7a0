"""Rules about the CUDA and cuDNN that TensorFlow will find."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tfenv import nvidia_images
from tfenv.factfiles import read
from tfenv.facts import Compiled
from tfenv.versions import major, minor

from .model import Finding
from .rules import Rule
from .serving import differs, why_not_cuda, why_not_cudnn
from .subject import Subject


def cuda_major(of: Subject) -> Iterator[Finding]:
    """Libraries of another CUDA major version."""
    if of.facts and of.cuda and major(of.cuda) != major(of.facts.cuda):
        yield _refused(of.facts, "cuda-major-mismatch", why_not_cuda(of.facts, of.cuda) or "")


def cuda_minor(of: Subject) -> Iterator[Finding]:
    """Libraries of an older CUDA, or with other sonames."""
    if not of.facts or not of.cuda or major(of.cuda) != major(of.facts.cuda):
        return
    if why := why_not_cuda(of.facts, of.cuda):
        yield _refused(of.facts, "cuda-minor-mismatch", why)


def cudnn_major(of: Subject) -> Iterator[Finding]:
    """A cuDNN of another major version."""
    if of.facts and of.cudnn and major(of.cudnn) != major(of.facts.cudnn):
        why = why_not_cudnn(of.facts, of.cudnn) or ""
        yield _refused(of.facts, "cudnn-major-mismatch", why + _whence(of), cudnn=True)


def cudnn_minor(of: Subject) -> Iterator[Finding]:
    """A cuDNN whose minor version is lower than the one compiled in."""
    if not of.facts or not of.cudnn or major(of.cudnn) != major(of.facts.cudnn):
        return
    if why := why_not_cudnn(of.facts, of.cudnn):
        yield _refused(of.facts, "cudnn-minor-too-old", why + _whence(of), cudnn=True)


def other_libraries(of: Subject) -> Iterator[Finding]:
    """Libraries that serve, and are not those it was compiled for."""
    if not of.facts or why_not_cuda(of.facts, of.cuda) or why_not_cudnn(of.facts, of.cudnn):
        return
    if said := differs(of.facts, cuda=of.cuda, cudnn=of.cudnn):
        yield Finding(code="other-libraries", severity="warn", message=said)


LIBRARY_RULES: tuple[Rule, ...] = (
    Rule("cuda-major-mismatch", cuda_major),
    Rule("cuda-minor-mismatch", cuda_minor),
    Rule("cudnn-major-mismatch", cudnn_major),
    Rule("cudnn-minor-too-old", cudnn_minor),
    Rule("other-libraries", other_libraries),
)


def serving_tags(facts: Compiled) -> tuple[str, ...]:
    """The nvidia/cuda tags whose libraries serve a release, of the CUDA nearest to it."""
    fitting: dict[str, list[str]] = {}
    for tag, cuda, cudnn in _tags(major(facts.cuda)):
        if not why_not_cuda(facts, cuda) and not why_not_cudnn(facts, cudnn):
            fitting.setdefault(minor(cuda), []).append(tag)
    return tuple(next(iter(fitting.values()), ()))[-3:]


@cache
def _tags(cuda_major: str) -> tuple[tuple[str, str, str], ...]:
    """The nvidia/cuda tags of a CUDA major version that hold a cuDNN: tag, CUDA, cuDNN."""
    found = []
    for tag in nvidia_images.tags_serving(cuda_major):
        image = nvidia_images.parse(f"nvidia/cuda:{tag}")
        if inside := nvidia_images.cudnn(image):
            found.append((tag, image.cuda, inside.versions[-1]))
    return tuple(found)


def _refused(facts: Compiled, code: str, why: str, *, cudnn: bool = False) -> Finding:
    needs = (
        f"libraries of CUDA {minor(facts.cuda)} and cuDNN {_short(facts.cudnn)}, or newer of the same major"
    )
    if only := read("sonames")["only_in"]["rows"].get(minor(facts.cuda)):
        needs = f"libraries of CUDA {minor(facts.cuda)}, the only ones with {only['soname']}"
    tags = serving_tags(facts)
    remedy = f"{needs}; nvidia/cuda tags with them: {', '.join(tags)}" if tags else needs
    if not tags:
        remedy += "; no nvidia/cuda tag has both: use a base flavour and NVIDIA's wheels"
    how = read("sonames")["cudnn_rule"]["source"] if cudnn else facts.source.get("cuda", "")
    return Finding(code=code, severity="refuse", message=why, remedy=remedy, source=how)


def _short(version: str) -> str:
    """The first two numbers, where there are two: ``8.6.0`` -> ``8.6``."""
    return ".".join(version.split(".")[:2])


def _whence(of: Subject) -> str:
    if not of.image or of.query.cudnn or not of.image.cudnn_name:
        return ""
    if of.cudnn_of:
        on = ", ".join(f"Ubuntu {release}" for release in of.cudnn_of)
        return f" (in {of.image.cuda}-{of.image.cudnn_name} for {on}; this tag is in no list)"
    return f" (what {of.image.tag} holds)"
