"""Rules about the image that an environment starts from."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv import eol
from tfenv.eol import Kind
from tfenv.factfiles import read
from tfenv.versions import minor

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
            "manylinux wheels, which need glibc. pip says only 'No matching distribution found'",
            remedy="a Debian or Ubuntu base",
            source="https://github.com/tensorflow/tensorflow/issues/85371",
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


def cpu_alone(of: Subject) -> Iterator[Finding]:
    """Nothing brings CUDA libraries, and nobody said where they come from."""
    query = of.query
    if of.source or query.cuda or query.by_tfenv or not query.tensorflow or not of.image:
        return
    if _nvidia(of) or of.image.brings_cuda != "no":
        return
    yield Finding(
        code="no-cuda-libraries",
        severity="limit",
        message=f"{of.image.name} holds no CUDA libraries and no wheels of them are asked for: "
        "TensorFlow runs there, on the CPU alone",
        remedy="an nvidia/cuda base with cudnn in its tag, or NVIDIA's wheels: tensorflow[and-cuda], "
        "where the release has that extra",
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
        remedy="say so with --cuda and --cudnn, or read it from the unpacked image: "
        "tfenv facts audit --installed FOLDER",
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
        f"{table['base']['gb']} GB of the base serve nobody (measured elsewhere: {table['base']['gb']} "
        f"GB beside {table['base']['wheels_gb']} GB of wheels, unpacked){packed}",
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
        "its packages for a release then: 'Unable to locate package'",
        remedy="a newer Ubuntu base, or a Python that does not depend on the PPA: a standalone build, uv "
        "or conda",
        source=eol.source("deadsnakes"),
    )


BASE_RULES: tuple[Rule, ...] = (
    Rule("musl-base", musl),
    Rule("base-without-cuda", no_cuda_source),
    Rule("no-cuda-libraries", cpu_alone),
    Rule("ppa-dropped-eol-distro", ppa_dropped),
    Rule("base-unknown", base_unknown),
    Rule("duplicate-cuda", two_sources),
    Rule("floating-tag", floating),
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
