"""Rules about the tags of nvidia/cuda: whether they exist, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv import nvidia_images

from .libraries import serving_tags
from .model import Finding
from .rules import Rule
from .subject import Subject


def line_withdrawn(of: Subject) -> Iterator[Finding]:
    """NVIDIA has withdrawn all images of that CUDA."""
    if not _nvidia(of) or not of.image or nvidia_images.state(of.image) != "withdrawn":
        return
    lines = nvidia_images.withdrawn_lines()
    yield Finding(
        code="base-line-withdrawn",
        severity="refuse",
        message=f"the images of CUDA {of.image.cuda} are withdrawn, and so are all of {lines[0]} to "
        f"{lines[-1]}: 'manifest unknown', and there is no patch release to go to",
        remedy="a copy that your team keeps in a registry of its own, CUDA from NVIDIA's packages, "
        "or a release that runs with a CUDA whose images exist",
        source=nvidia_images.source(),
    )


def tag_removed(of: Subject) -> Iterator[Finding]:
    """The tag was deleted; a later point release took its place."""
    if not _nvidia(of) or not of.image or nvidia_images.state(of.image) != "removed":
        return
    yield Finding(
        code="base-tag-removed",
        severity="refuse",
        message=f"the tag {of.image.tag} was removed: it was last seen on "
        f"{nvidia_images.last_seen(of.image)}",
        remedy=_instead(of),
        source=nvidia_images.source(),
    )


def variant_missing(of: Subject) -> Iterator[Finding]:
    """There is no such cuDNN variant of that CUDA."""
    if not _nvidia(of) or not of.image or not of.image.cudnn_name:
        return
    variants = nvidia_images.variants(of.image.cuda)
    known = nvidia_images.releases(of.image.cuda)
    if not known or any(variant.split(" ")[0] == of.image.cudnn_name for variant in variants):
        return
    has = f"only {', '.join(variants)}" if variants else "none with cuDNN at all"
    yield Finding(
        code="base-cudnn-variant-missing",
        severity="refuse",
        message=f"there is no {of.image.cudnn_name} variant of nvidia/cuda:{of.image.cuda}, {has}",
        remedy=_instead(of),
        source=nvidia_images.source(),
    )


def lacks_cudnn(of: Subject) -> Iterator[Finding]:
    """CUDA is to come from the base, and the base has no cuDNN."""
    if of.source != "base" or not _nvidia(of) or not of.image or not of.image.flavour:
        return
    if of.image.cudnn_name or of.query.cudnn:
        return
    what = (
        "has cudart only: neither cuDNN nor cuBLAS and the other math libraries"
        if of.image.flavour == "base"
        else "has no cuDNN"
    )
    yield Finding(
        code="base-flavour-lacks-cudnn",
        severity="refuse",
        message=f"{of.image.name} is of flavour {of.image.flavour} without cudnn in its tag: it {what}, and "
        "TensorFlow needs libcudnn to find a GPU",
        remedy=f"{_instead(of)}; or a base flavour with NVIDIA's wheels (cuda_source: wheels)",
        source=nvidia_images.source(),
    )


def lacks_compiler(of: Subject) -> Iterator[Finding]:
    """CUDA comes from an image without ptxas, libdevice and CUPTI."""
    if (
        of.source != "base"
        or not of.image
        or not nvidia_images.lacks_compiler(of.image)
        or not of.image.cudnn_name
    ):
        return
    yield Finding(
        code="base-without-ptxas",
        severity="limit",
        message=f"{of.image.name} has no ptxas, libdevice and CUPTI: no XLA (jit_compile, which Keras 3 "
        "may choose by itself), and no GPU in profiles",
        remedy=f"NVIDIA's wheels nvidia-cuda-nvcc-cu{of.image.cuda.split('.')[0]} and nvidia-cuda-cupti-cu"
        f"{of.image.cuda.split('.')[0]} beside it, or the devel flavour",
        source=nvidia_images.source(),
    )


def tag_unlisted(of: Subject) -> Iterator[Finding]:
    """No list has the tag, or it does not follow the scheme."""
    if not _nvidia(of) or not of.image or of.image.is_floating:
        return
    if of.image.cuda and nvidia_images.state(of.image) != "unlisted":
        return
    releases = nvidia_images.releases(of.image.cuda)
    there = f"; CUDA {of.image.cuda} is there for Ubuntu {', '.join(releases)}" if releases else ""
    yield Finding(
        code="base-tag-unlisted",
        severity="unknown",
        message=f"the tag {of.image.tag} is in none of NVIDIA's lists (as of {nvidia_images.as_of()}){there}",
        remedy=f"see whether it exists: docker buildx imagetools inspect {of.image.name}",
        source=nvidia_images.source(),
    )


def tag_unsupported(of: Subject) -> Iterator[Finding]:
    """The tag exists, and may be deleted any day."""
    if not _nvidia(of) or not of.image or nvidia_images.state(of.image) != "unsupported":
        return
    yield Finding(
        code="base-tag-unsupported",
        severity="warn",
        message=f"NVIDIA no longer supports {of.image.tag} and may delete it",
        remedy=f"keep a copy in a registry of your own, or move on. {_instead(of)}",
        source=nvidia_images.source(),
    )


def moved(of: Subject) -> Iterator[Finding]:
    """The tag was pushed again with another cuDNN."""
    if not of.image or of.image.digest or not (history := nvidia_images.history(of.image)):
        return
    told = ", ".join(f"{version} ({day})" for day, version in history)
    known = nvidia_images.digest(of.image)
    yield Finding(
        code="base-tag-moved",
        severity="warn",
        message=f"the tag {of.image.tag} was pushed again and again, with cuDNN {told}",
        remedy=f"name the digest too: @{known}" if known else "name the digest too",
        source=nvidia_images.source(),
    )


TAG_RULES: tuple[Rule, ...] = (
    Rule("base-line-withdrawn", line_withdrawn),
    Rule("base-tag-removed", tag_removed),
    Rule("base-cudnn-variant-missing", variant_missing),
    Rule("base-flavour-lacks-cudnn", lacks_cudnn),
    Rule("base-without-ptxas", lacks_compiler),
    Rule("base-tag-unlisted", tag_unlisted),
    Rule("base-tag-unsupported", tag_unsupported),
    Rule("base-tag-moved", moved),
)


def _nvidia(of: Subject) -> bool:
    return bool(of.image and of.image.is_nvidia_cuda)


def _instead(of: Subject) -> str:
    tags = serving_tags(of.facts) if of.facts else ()
    if tags:
        return f"tags that serve TensorFlow {of.release}: {', '.join(tags)}"
    if of.facts:
        return f"no nvidia/cuda tag serves TensorFlow {of.release}: a base flavour and NVIDIA's wheels do"
    return "a -cudnn-runtime tag of a supported CUDA"
