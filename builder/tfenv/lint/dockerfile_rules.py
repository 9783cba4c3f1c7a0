"""What is wrong with a Dockerfile for TensorFlow with GPUs: a table of rules; and what it asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from packaging.utils import canonicalize_name

from tfenv.compat.bases import BASE_RULES
from tfenv.compat.data import read
from tfenv.compat.model import Finding, Query
from tfenv.compat.pins import pins, requirements

from .dockerfile import Stage, parse
from .installs import Pip, brings_python, calls_python, cleans, debs, fills, pips

_TENSORFLOW = ("tensorflow", "tensorflow-gpu", "tf-nightly")
_VARIABLES = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
_SONAME = re.compile(r"(lib(?:cu|nv|nccl)\w*)\.so\.([0-9.]+)")


@dataclass(frozen=True, kw_only=True)
class Dockerfile:
    """A Dockerfile's stages; ``final`` is the one that becomes the image."""

    stages: tuple[Stage, ...]

    @property
    def final(self) -> Stage:
        """The last stage."""
        return self.stages[-1]


Check = Callable[[Dockerfile], Iterator[Finding]]


@dataclass(frozen=True)
class DockerfileRule:
    """A rule: ``check`` gives findings of this ``code`` alone."""

    code: str
    check: Check


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
            "do, and "
            f"{' and '.join(missing)} is not set here: enroot, pyxis and other runtimes give such an "
            "image no GPU",
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
                    message=f"{what} brings libnvidia-* or libcuda of a driver into the image. The host's "
                    "are mounted "
                    "over them: with WSL2 the container does not start ('file exists'), elsewhere the "
                    "versions "
                    "may not match",
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
                second = [name for name in names if name not in _TENSORFLOW]
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


def unlocked_mounts(of: Dockerfile) -> Iterator[Finding]:
    """apt's caches are mounted, and two builds at once get in each other's way."""
    for stage in of.stages:
        for instruction in stage.instructions[stage.own :]:
            bad = [
                target
                for mount in instruction.mounts
                if mount.get("type") == "cache"
                and (target := mount.get("target", mount.get("dst", ""))).startswith(
                    ("/var/cache/apt", "/var/lib/apt")
                )
                and mount.get("sharing", "shared") == "shared"
            ]
            if bad:
                yield Finding(
                    code="cache-mount-not-locked",
                    severity="lint",
                    message=f"the cache mounts {', '.join(bad)} are shared between builds that run at once: "
                    "'Could not get lock /var/lib/apt/lists/lock'",
                    remedy="add sharing=locked to each: "
                    "--mount=type=cache,target=/var/cache/apt,sharing=locked",
                    source="https://github.com/moby/buildkit/issues/1662",
                    line=instruction.line,
                )


def cleaned_too_late(of: Dockerfile) -> Iterator[Finding]:
    """A cache is emptied in a later layer than the one that it is in."""
    for stage in of.stages:
        kept: dict[str, int] = {}
        for instruction in stage.instructions[stage.own :]:
            filled, cleaned = fills(instruction), cleans(instruction)
            late = sorted(kind for kind in cleaned - filled if kind in kept)
            if late:
                where = ", ".join(f"{kind} (filled in line {kept[kind]})" for kind in late)
                yield Finding(
                    code="cache-left-in-layer",
                    severity="lint",
                    message=f"emptying the cache of {where} in a RUN of its own frees nothing: it stays "
                    "in the layer "
                    "below",
                    remedy="clean up in the same RUN that fills it, or use a cache mount, or pip's "
                    "--no-cache-dir",
                    source="https://github.com/tensorflow/tensorflow/issues/59293",
                    line=instruction.line,
                )
            kept.update(dict.fromkeys(filled - cleaned, instruction.line))


def renamed_library(of: Dockerfile) -> Iterator[Finding]:
    """A library is given the name of another version."""
    for stage in of.stages:
        for instruction in stage.instructions[stage.own :]:
            for words in instruction.commands:
                names = _SONAME.findall(" ".join(words)) if words[0] in ("ln", "cp", "mv") else []
                if len(names) == 2 and names[0][0] == names[1][0] and _other_major(names[0][1], names[1][1]):
                    yield Finding(
                        code="library-renamed",
                        severity="lint",
                        message=f"{names[0][0]}.so.{names[0][1]} is given the name of version "
                        f"{names[1][1]}: the name "
                        "is a promise of the interface, and calls may crash or compute wrongly",
                        remedy="take the libraries that TensorFlow was compiled for: tfenv explain --tf "
                        "VERSION",
                        source="https://github.com/tensorflow/tensorflow/issues/43947",
                        line=instruction.line,
                    )


DOCKERFILE_RULES: tuple[DockerfileRule, ...] = (
    DockerfileRule("base-has-no-python", no_python),
    DockerfileRule("driver-libs-baked-into-image", driver_libraries),
    DockerfileRule("image-missing-nvidia-env", missing_variables),
    DockerfileRule("unpinned-gpu-package", unpinned),
    DockerfileRule("floating-stage", floating_below),
    DockerfileRule("library-renamed", renamed_library),
    DockerfileRule("cache-mount-not-locked", unlocked_mounts),
    DockerfileRule("cache-left-in-layer", cleaned_too_late),
)
_OF_BASE = frozenset(rule.code for rule in BASE_RULES)


def lint_dockerfile(text: str) -> tuple[Query, tuple[Finding, ...]]:
    """The question that the image of a Dockerfile asks, and what is wrong with the file itself."""
    stages = parse(text)
    if not stages:
        message = "there is no instruction in the file"
        return Query(), (Finding(code="dockerfile-empty", severity="unknown", message=message),)
    of = Dockerfile(stages=stages)
    return _query(of.final), tuple(finding for rule in DOCKERFILE_RULES for finding in rule.check(of))


def line_of(finding: Finding, text: str) -> int:
    """The line that a finding about the question belongs to: FROM, or where TensorFlow is installed."""
    stages = parse(text)
    if not stages or finding.line:
        return finding.line
    if finding.code in _OF_BASE:
        return stages[-1].line
    asking = (pip.line for pip in pips(stages[-1]) if _names(pip.asked) & set(_TENSORFLOW))
    return next(asking, 0)


def _query(stage: Stage) -> Query:
    """What is asked of the final stage; without TensorFlow in it, only its base's name counts."""
    asked = tuple(text for pip in pips(stage) for text in pip.asked)
    base = stage.image.name if stage.image else ""
    if not _names(asked) & set(_TENSORFLOW):
        floats = bool(stage.image and stage.image.is_floating)
        return Query(base=base if floats else "")
    env = dict(stage.env)
    if any("ld.so.conf" in i.text + i.body for i in stage.instructions):
        env.setdefault("LD_LIBRARY_PATH", "nvidia/*/lib by ld.so.conf")
    pinned = pins(asked)
    python = stage.image.python if stage.image else ""
    for instruction in stage.instructions:
        for name in debs(instruction):
            if match := re.fullmatch(r"python(3\.\d+)", name):
                python = match[1]
    return Query(
        tensorflow=next((pinned[name] for name in _TENSORFLOW if name in pinned), ""),
        python=python,
        base=base,
        platform=stage.platform,
        env=tuple(env.items()),
        extra=asked,
    )


def _names(asked: tuple[str, ...]) -> set[str]:
    return {canonicalize_name(one.name) for one in requirements(asked)}


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


def _other_major(left: str, right: str) -> bool:
    return left.split(".")[0] != right.split(".")[0]
