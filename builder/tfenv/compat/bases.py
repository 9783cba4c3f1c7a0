"""Rules about the image that an environment starts from."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv import eol, nvidia_images
from tfenv.eol import Kind
from tfenv.versions import minor

from .data import read
from .libraries import serving_tags
from .model import Finding
from .rules import Rule
from .subject import Subject


def musl(of: Subject) -> Iterator[Finding]:
    """The C library is musl."""
    if of.image and of.image.is_musl:
        yield Finding(
            code="musl-base",
            severity="refuse",
            message=f"{of.image.name} is Alpine, whose C library is musl; TensorFlow's wheels are "
            "manylinux wheels, "
            "which need glibc. pip says only 'No matching distribution found'",
            remedy="a Debian or Ubuntu base",
            source="https://github.com/tensorflow/tensorflow/issues/85371",
        )


def line_withdrawn(of: Subject) -> Iterator[Finding]:
    """NVIDIA has withdrawn all images of that CUDA."""
    if not _nvidia(of) or not of.image or nvidia_images.state(of.image) != "withdrawn":
        return
    lines = nvidia_images.withdrawn_lines()
    yield Finding(
        code="base-line-withdrawn",
        severity="refuse",
        message=f"the images of CUDA {of.image.cuda} are withdrawn, and so are all of {lines[0]} to "
        f"{lines[-1]}: "
        "'manifest unknown', and there is no patch release to go to",
        remedy="a copy that your team keeps in a registry of its own, CUDA from NVIDIA's packages, "
        "or a release that runs with CUDA 11 or 12",
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
        "may choose "
        "by itself), and no GPU in profiles",
        remedy=f"NVIDIA's wheels nvidia-cuda-nvcc-cu{of.image.cuda.split('.')[0]} and nvidia-cuda-cupti-cu"
        f"{of.image.cuda.split('.')[0]} beside it, or the devel flavour",
        source=nvidia_images.source(),
    )


def no_cuda_source(of: Subject) -> Iterator[Finding]:
    """CUDA is to come from a base that has none."""
    if of.source != "base" or not of.image or _nvidia(of) or of.image.brings_cuda != "no":
        return
    yield Finding(
        code="base-without-cuda",
        severity="refuse",
        message=f"{of.image.name} holds no CUDA libraries, and no other source of them is named",
        remedy="an nvidia/cuda base with cudnn in its tag, or NVIDIA's wheels (cuda_source: wheels)",
    )


def base_unknown(of: Subject) -> Iterator[Finding]:
    """CUDA comes from an image of which nothing is known."""
    if of.source != "base" or not of.image or _nvidia(of) or of.image.brings_cuda == "no":
        return
    if of.query.cuda and of.query.cudnn:
        return
    yield Finding(
        code="base-unknown",
        severity="unknown",
        message=f"which CUDA and cuDNN {of.image.name} holds is not known",
        remedy="say so with --cuda and --cudnn, or measure it: tfenv facts audit reads an installed image",
    )


def two_sources(of: Subject) -> Iterator[Finding]:
    """CUDA is in the base and comes as wheels too."""
    if of.source != "wheels" or not of.image or of.image.brings_cuda != "yes":
        return
    table = read("packages")["and_cuda_mb"]
    size = table["rows"].get(minor(of.release)) if of.release else None
    packed = (
        f"; the wheels of TensorFlow {minor(of.release)} alone are {size / 1000:.1f} GB to download"
        if size
        else ""
    )
    yield Finding(
        code="duplicate-cuda",
        severity="lint",
        message=f"CUDA is there twice: in the base {of.image.name} and as pip wheels. About "
        f"{table['base']['gb']} GB "
        f"of the base serve nobody (measured elsewhere: {table['base']['gb']} GB beside "
        f"{table['base']['wheels_gb']} GB of wheels, unpacked){packed}",
        remedy="a base flavour, or plain Debian or Ubuntu, with the pip wheels; or the base's CUDA "
        "without [and-cuda]",
        source=table["base"]["source"],
    )


def floating(of: Subject) -> Iterator[Finding]:
    """The name means another image from time to time."""
    if of.image and of.image.is_floating and of.image.repository != "scratch":
        tag = of.image.tag or "latest, which is meant where no tag is given,"
        yield Finding(
            code="floating-tag",
            severity="lint",
            message=f"the tag of {of.image.name} is not fixed: {tag} is whatever was pushed last, or not "
            "for years",
            remedy="name the exact tag with its digest: IMAGE:TAG@sha256:...",
            source="https://github.com/tensorflow/tensorflow/issues/62741",
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


def distro_ended(of: Subject) -> Iterator[Finding]:
    """The distribution gets no more fixes."""
    if of.query.python_source == "deadsnakes" or not (ended := _ended(of)):
        return
    yield Finding(
        code="base-eol",
        severity="warn",
        message=f"{ended[0]} reached its end of life on {ended[1]}: no more security fixes, and its "
        "packages may move",
        remedy="a newer base with the same CUDA, where there is one",
        source=ended[2],
    )


def ppa_dropped(of: Subject) -> Iterator[Finding]:
    """Python from a PPA that deletes everything at the distribution's end of life."""
    if of.query.python_source != "deadsnakes" or not (ended := _ended(of)):
        return
    yield Finding(
        code="ppa-dropped-eol-distro",
        severity="refuse",
        message=f"{ended[0]} reached its end of life on {ended[1]}, and the deadsnakes PPA deletes all "
        "its packages "
        "for a release then: 'Unable to locate package'",
        remedy="a newer Ubuntu base, or a Python that does not depend on the PPA: a standalone build, uv "
        "or conda",
        source=eol.source("deadsnakes"),
    )


BASE_RULES: tuple[Rule, ...] = (
    Rule("musl-base", musl),
    Rule("base-line-withdrawn", line_withdrawn),
    Rule("base-tag-removed", tag_removed),
    Rule("base-cudnn-variant-missing", variant_missing),
    Rule("base-flavour-lacks-cudnn", lacks_cudnn),
    Rule("base-without-ptxas", lacks_compiler),
    Rule("base-without-cuda", no_cuda_source),
    Rule("ppa-dropped-eol-distro", ppa_dropped),
    Rule("base-tag-unlisted", tag_unlisted),
    Rule("base-unknown", base_unknown),
    Rule("duplicate-cuda", two_sources),
    Rule("floating-tag", floating),
    Rule("base-tag-unsupported", tag_unsupported),
    Rule("base-tag-moved", moved),
    Rule("base-eol", distro_ended),
)


def _nvidia(of: Subject) -> bool:
    return bool(of.image and of.image.is_nvidia_cuda)


def _ended(of: Subject) -> tuple[str, str, str] | None:
    if not of.image or not of.known or of.image.distro not in ("ubuntu", "debian"):
        return None
    kind: Kind = "ubuntu" if of.image.distro == "ubuntu" else "debian"
    last = eol.ended(kind, of.image.release, of.known.today)
    return (f"{kind.capitalize()} {of.image.release}", str(last), eol.source(kind)) if last else None


def _instead(of: Subject) -> str:
    tags = serving_tags(of.facts) if of.facts else ()
    if tags:
        return f"tags that serve TensorFlow {of.release}: {', '.join(tags)}"
    if of.facts:
        return f"no nvidia/cuda tag serves TensorFlow {of.release}: a base flavour and NVIDIA's wheels do"
    return "a -cudnn-runtime tag of a supported CUDA"
