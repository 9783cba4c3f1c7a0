"""Rules about the layers of a Dockerfile: caches, and libraries under other names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tfenv.compat.model import Finding

from .installs import cleans, fills
from .rules import Dockerfile, DockerfileRule

_SONAME = re.compile(r"(lib(?:cu|nv|nccl)\w*)\.so\.([0-9.]+)")


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
                    "in the layer below",
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
                        f"{names[1][1]}: the name is a promise of the interface, and calls may crash or "
                        "compute wrongly",
                        remedy="take the libraries that TensorFlow was compiled for: tfenv explain --tf "
                        "VERSION",
                        source="https://github.com/tensorflow/tensorflow/issues/43947",
                        line=instruction.line,
                    )


LAYER_RULES: tuple[DockerfileRule, ...] = (
    DockerfileRule("library-renamed", renamed_library),
    DockerfileRule("cache-mount-not-locked", unlocked_mounts),
    DockerfileRule("cache-left-in-layer", cleaned_too_late),
)


def _other_major(left: str, right: str) -> bool:
    return left.split(".")[0] != right.split(".")[0]
