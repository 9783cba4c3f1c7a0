"""Rules about what a Dockerfile puts into the image: Python, packages, driver libraries, variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch

from packaging.utils import canonicalize_name

from tfenv.compat.model import Finding
from tfenv.compat.pins import pins, requirements
from tfenv.factfiles import read

from .dockerfile import Stage
from .installs import TENSORFLOW, Pip, brings_python, calls_python, debs, pips
from .rules import Dockerfile, DockerfileRule

_VARIABLES = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")


def missing_variables(of: Dockerfile) -> Iterator[Finding]:
    """No NVIDIA_* variables on a base that sets none."""
    stage = of.final
    if stage.image is None or stage.image.sets_nvidia_variables != "no" or not _for_gpus(stage):
        return
    missing = [name for name in _VARIABLES if name not in stage.env]
    if missing:
        yield Finding(
            code="image-missing-nvidia-env",
            severity="lint",
            message=f"{stage.image.name} does not set {' and '.join(_VARIABLES)} as nvidia/cuda images "
            f"do, and {' and '.join(missing)} is not set here: enroot, pyxis and other runtimes give "
            "such an image no GPU",
            remedy="ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            source="https://github.com/NVIDIA/enroot/issues/205",
            line=stage.line,
        )


def driver_libraries(of: Dockerfile) -> Iterator[Finding]:
    """Libraries of a driver in the image."""
    table = read("packages")["driver_packages"]
    for stage in of.stages:
        for instruction in stage.instructions[stage.own :]:
            bad = [name for name in debs(instruction) if any(fnmatch(name, p) for p in table["patterns"])]
            copied = instruction.word in ("COPY", "ADD") and re.search(
                r"lib(cuda|nvidia-[a-z]+)\.so", instruction.text
            )
            if bad or copied:
                what = ", ".join(bad) if bad else instruction.text
                yield Finding(
                    code="driver-libs-baked-into-image",
                    severity="lint",
                    message=f"{what} brings libnvidia-* or libcuda of a driver into the image. The "
                    "host's are mounted over them: with WSL2 the container does not start ('file "
                    "exists'), elsewhere the versions may not match",
                    remedy="leave it out (what is needed of CUDA has packages of its own: cuda-nvcc-VERSION, "
                    "ocl-icd-libopencl1), or delete libnvidia-* and libcuda* in the same RUN",
                    source=table["source"],
                    line=instruction.line,
                )


def unpinned(of: Dockerfile) -> Iterator[Finding]:
    """A package with a CUDA of its own, in whatever version is newest."""
    table = read("packages")["gpu_packages"]
    for stage in of.stages:
        for pip in _own_pips(stage):
            loose = [] if pip.constrained else _loose(pip.asked)
            names = [name for name in loose if name in table["rows"]]
            if names:
                second = [name for name in names if name not in TENSORFLOW]
                yield Finding(
                    code="unpinned-gpu-package",
                    severity="lint",
                    message=f"{', '.join(names)} without ==: a later build takes another version, for "
                    "another CUDA"
                    + (
                        f"; and {', '.join(second)} brings a second CUDA beside TensorFlow's"
                        if second
                        else ""
                    ),
                    remedy=f"pin it, with the suffix of its CUDA where it has one: {names[0]}==X.Y.Z",
                    source=table["source"],
                    line=pip.line,
                )


def no_python(of: Dockerfile) -> Iterator[Finding]:
    """python or pip is called before anything has brought one."""
    for stage in of.stages:
        if stage.image is None or stage.image.has_python != "no":
            continue
        if found := _first_call(stage):
            line, word = found
            yield Finding(
                code="base-has-no-python",
                severity="lint",
                message=f"'{word}' is called, and {stage.image.name} has no Python: 'python: not found' or "
                "'pip: not found'",
                remedy="install one first: apt-get install -y python3 python3-pip (mind its version), or a "
                "standalone Python",
                source="https://github.com/replicate/cog/issues/1911",
                line=line,
            )


def floating_below(of: Dockerfile) -> Iterator[Finding]:
    """A stage other than the last one starts from a tag that moves."""
    for stage in of.stages[:-1]:
        if stage.image and stage.image.is_floating and stage.image.repository != "scratch" and stage.line:
            yield Finding(
                code="floating-stage",
                severity="lint",
                message=f"the tag of {stage.image.name} is not fixed: it is whatever was pushed last",
                remedy="name the exact tag with its digest: IMAGE:TAG@sha256:...",
                line=stage.line,
            )


CONTENT_RULES: tuple[DockerfileRule, ...] = (
    DockerfileRule("base-has-no-python", no_python),
    DockerfileRule("driver-libs-baked-into-image", driver_libraries),
    DockerfileRule("image-missing-nvidia-env", missing_variables),
    DockerfileRule("unpinned-gpu-package", unpinned),
    DockerfileRule("floating-stage", floating_below),
)


def _first_call(stage: Stage) -> tuple[int, str] | None:
    """Line and word of the first call of a python that nothing has brought; None if there is none."""
    for instruction in stage.instructions:
        if instruction.word in ("COPY", "ADD") and brings_python(instruction, ()):
            return None
        for words in instruction.commands:
            if brings_python(instruction, words):
                return None
            if calls_python(words):
                return instruction.line, words[0]
    return None


def _loose(asked: tuple[str, ...]) -> list[str]:
    pinned = pins(asked)
    read_ = (one for one in requirements(asked) if not one.url)
    return [name for one in read_ if (name := canonicalize_name(one.name)) not in pinned]


def _own_pips(stage: Stage) -> Iterator[Pip]:
    first = stage.instructions[stage.own].line if stage.own < len(stage.instructions) else 0
    return (pip for pip in pips(stage) if pip.line >= first)


def _for_gpus(stage: Stage) -> bool:
    """Whether the image is meant for GPUs: CUDA's libraries are installed in it."""
    asked = [text.lower() for pip in pips(stage) for text in pip.asked]
    packages = [name for instruction in stage.instructions for name in debs(instruction)]
    return any("and-cuda" in text or text.startswith("nvidia-") for text in asked) or any(
        name.startswith(("cuda-", "libcudnn", "libcublas")) for name in packages
    )
