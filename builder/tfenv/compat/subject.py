"""From a question to what the rules look at: the release's facts, the image's contents, the GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date

from tfenv import gpus, nvidia_images
from tfenv.errors import UsageError
from tfenv.facts import Compiled
from tfenv.gpus import Gpu
from tfenv.nvidia_images import Image
from tfenv.versions import agrees, is_final, minor, order

from .model import Query

_WHEEL = re.compile(r"nvidia-(?P<name>cudnn|cuda-runtime)-cu\d+==(?P<version>[0-9.]+)")
#: What only the libraries of a wheel tell.
_OF_LIBRARIES = ("cudnn", "nccl", "nccl_how", "nccl_sass", "sass", "ptx", "unusable", "opens")
Lookup = Callable[[str], Compiled]


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the rules may ask the world: the releases that facts are known of, and the day.

    Args:
        requires: what a release's own metadata asks for, as it stands there; empty if not known.
    """

    compiled: Lookup
    releases: tuple[str, ...]
    today: date
    requires: Callable[[str], tuple[str, ...]] = lambda _release: ()


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A question with all that is known about its parts.

    Args:
        release: the release that is meant; facts: of it, or of ``inherited_from``; None if unknown.
        read_from: the patch release whose libraries were read, where those of ``release`` were not.
        cuda, cudnn: of the libraries; cudnn_of: the Ubuntu releases whose tags say so, if inferred.
        source: ``base``, ``wheels`` or empty for not known.
        gpu: the one that this judgement is about; gpu_name: as it was asked.
        known: what may be asked beside; None where a quick answer is wanted.
    """

    query: Query
    release: str = ""
    facts: Compiled | None = None
    inherited_from: str = ""
    read_from: str = ""
    image: Image | None = None
    source: str = ""
    cuda: str = ""
    cudnn: str = ""
    cudnn_of: tuple[str, ...] = ()
    gpu: Gpu | None = None
    gpu_name: str = ""
    known: Known | None = None

    @property
    def libraries(self) -> tuple[str, str]:
        """CUDA and cuDNN of the libraries; what the release was compiled for where nothing else is said."""
        compiled = (self.facts.cuda, self.facts.cudnn) if self.facts else ("", "")
        return self.cuda or compiled[0], self.cudnn or compiled[1]


def subjects(query: Query, known: Known) -> tuple[Subject, ...]:
    """The subjects of a question: one, or one for each GPU that it names."""
    release, facts, inherited = _release(query.tensorflow, known)
    facts, read_from = _completed(facts, known)
    image = nvidia_images.parse(query.base) if query.base else None
    source = _source(query, image)
    wheels = _pinned_wheels(query)
    cuda, cudnn = query.cuda or wheels.get("cuda", ""), query.cudnn or wheels.get("cudnn", "")
    inferred: tuple[str, ...] = ()
    if image and image.is_nvidia_cuda and source == "base":
        cuda = cuda or image.cuda
        inside = nvidia_images.cudnn(image)
        if inside and not cudnn:
            # Several: the best of them, so that only what no tag could serve is refused.
            cudnn, inferred = inside.versions[-1], inside.inferred_from
    return tuple(
        Subject(
            query=query,
            release=release,
            facts=facts,
            inherited_from=inherited,
            read_from=read_from,
            image=image,
            source=source,
            cuda=cuda,
            cudnn=cudnn,
            cudnn_of=inferred,
            gpu=gpus.find(name) if name else None,
            gpu_name=name,
            known=known,
        )
        for name in query.gpus or ("",)
    )


def asks_for_wheels(query: Query) -> bool:
    """Whether NVIDIA's wheels are among the requirements."""
    return any("and-cuda" in text or text.lower().startswith("nvidia-") for text in query.extra)


def _completed(facts: Compiled | None, known: Known) -> tuple[Compiled | None, str]:
    """Facts with what only the libraries tell, taken from the nearest patch release that was read."""
    if facts is None or facts.deep:
        return facts, ""
    same = [r for r in known.releases if minor(r) == minor(facts.tensorflow) and is_final(r)]
    for release in sorted(same, key=lambda r: order(r) < order(facts.tensorflow)):
        read = known.compiled(release)
        if read.deep and agrees(facts.cuda, read.cuda) and agrees(facts.cudnn, read.cudnn):
            taken = {k: getattr(read, k) for k in _OF_LIBRARIES}
            return replace(facts, deep=True, **taken), release
    return facts, ""


def _pinned_wheels(query: Query) -> dict[str, str]:
    """CUDA (to the minor) and cuDNN of NVIDIA's wheels among the requirements, where they are pinned."""
    found = {}
    for text in query.extra:
        if match := _WHEEL.match(text.lower().replace("_", "-").replace(" ", "")):
            cudnn = match["name"] == "cudnn"
            found["cudnn" if cudnn else "cuda"] = match["version"] if cudnn else minor(match["version"])
    return found


def _source(query: Query, image: Image | None) -> str:
    if query.cuda_source:
        return {"pip": "wheels", "wheel": "wheels", "extra": "wheels"}.get(
            query.cuda_source, query.cuda_source
        )
    if asks_for_wheels(query):
        return "wheels"
    return "base" if image and (image.is_nvidia_cuda or image.brings_cuda == "yes") else ""


def _release(asked: str, known: Known) -> tuple[str, Compiled | None, str]:
    """The release that is meant, its facts, and the release whose facts they are if not its own."""
    if not asked:
        return "", None, ""
    finals = [release for release in known.releases if is_final(release)]
    same_minor = [release for release in finals if minor(release) == minor(asked)]
    if asked.count(".") < 2 and is_final(asked) and same_minor:
        asked = same_minor[-1]
    if asked in known.releases:
        try:
            return asked, known.compiled(asked), ""
        except UsageError:
            return asked, None, ""
    if not same_minor:
        return asked, None, ""
    older = [release for release in same_minor if order(release) < order(asked)]
    nearest = older[-1] if older else same_minor[0]
    return asked, known.compiled(nearest), nearest
