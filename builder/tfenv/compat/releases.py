"""Rules about the release itself: whether it is known, its Pythons, its platform, its extra."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv import eol, gpus
from tfenv.factfiles import read
from tfenv.versions import is_final, minor, order

from .model import Finding
from .rules import Rule
from .subject import Subject

_LINUX = ("linux", "linux/amd64", "linux/x86_64", "x86_64", "amd64", "linux-64")
_ARM = ("linux/arm64", "linux/arm64/v8", "linux/aarch64", "arm64", "aarch64", "linux-aarch64")
_OTHER = ("windows", "windows/amd64", "win_amd64", "darwin", "darwin/arm64", "macos", "macos/arm64")


def unknown(of: Subject) -> Iterator[Finding]:
    """Nothing is known of the release or its minor release."""
    if of.release and of.facts is None and of.known:
        releases = of.known.releases
        known = f"facts reach from {releases[0]} to {releases[-1]}" if releases else "there are no facts"
        candidates = [release for release in releases if minor(release) == minor(of.release)]
        if candidates:
            known = f"there are only candidates of it: {', '.join(candidates)}"
        yield Finding(
            code="release-unknown",
            severity="refuse",
            message=f"nothing is known of TensorFlow {of.release}, so nothing is promised: {known}",
            remedy="use a known release, or read it from its wheels: tfenv facts audit",
        )


def unknown_patch(of: Subject) -> Iterator[Finding]:
    """A patch release that is not known, of a minor release that is."""
    if of.inherited_from:
        yield Finding(
            code="matrix-table-stale",
            severity="warn",
            message=f"TensorFlow {of.release} is not among the known releases; what is said of it is "
            f"what holds for {of.inherited_from}, the nearest of {minor(of.release)}",
            remedy=f"read it from its wheels: tfenv facts audit --deep {of.release}",
        )


def read_from_another(of: Subject) -> Iterator[Finding]:
    """The libraries of another patch release were read."""
    if of.read_from:
        yield Finding(
            code="facts-of-another-patch",
            severity="warn",
            message=f"the libraries of TensorFlow {of.release} were not read; what is said of its "
            f"kernels and its exact cuDNN is what {of.read_from} holds",
            remedy=f"tfenv facts audit --deep {of.release}",
        )


def prerelease(of: Subject) -> Iterator[Finding]:
    """A release candidate that nobody asked for on purpose."""
    if not of.release or is_final(of.release) or of.query.allow_prerelease:
        return
    final = order(of.release).base_version
    yield Finding(
        code="prerelease-not-allowed",
        severity="refuse",
        message=f"TensorFlow {of.release} is a pre-release of {final}: it is not chosen unless it is "
        "asked for on purpose",
        remedy=f"use {final} or a later patch of it; to stay with the candidate: --pre",
    )


def yanked(of: Subject) -> Iterator[Finding]:
    """A release that was withdrawn from the package index."""
    if of.facts and of.facts.yanked and not of.inherited_from:
        yield Finding(
            code="release-yanked",
            severity="warn",
            message=f"TensorFlow {of.release} was withdrawn from the package index: {of.facts.yanked}",
            remedy="use another patch of the same minor release",
        )


def python_without_wheel(of: Subject) -> Iterator[Finding]:
    """There is no wheel for the Python."""
    if not of.facts or not of.query.python or minor(of.query.python) in of.facts.pythons:
        return
    python = minor(of.query.python)
    has = _releases_with(python, of)
    yield Finding(
        code="python-not-supported-by-tf",
        severity="refuse",
        message=f"TensorFlow {of.release} has no wheel for Python {python}, only for "
        f"{', '.join(of.facts.pythons)}",
        remedy=f"use one of these, or a TensorFlow with wheels for {python}: {has}"
        if has
        else "use one of these",
        source=of.facts.source.get("pythons", ""),
    )


def python_ended(of: Subject) -> Iterator[Finding]:
    """The Python gets no more fixes."""
    if not of.query.python or not of.known:
        return
    python = minor(of.query.python)
    if last := eol.ended("python", python, of.known.today):
        yield Finding(
            code="python-eol",
            severity="warn",
            message=f"Python {python} reached its end of life on {last}: no more security fixes",
            source=eol.source("python"),
        )


def aarch64(of: Subject) -> Iterator[Finding]:
    """The wheels for aarch64 have no CUDA. A GPU that is made with an Arm CPU means them, too.

    NVIDIA's own image of TensorFlow has another build.
    """
    if of.image and of.image.repository == "nvidia/tensorflow":
        return
    in_arm = of.gpu is not None and of.gpu.host in _ARM
    if of.query.platform.lower() not in _ARM and not in_arm:
        return
    fact = read("packages")["no_cuda_platforms"]
    if of.gpu and in_arm:
        yield Finding(
            code="aarch64-wheel-no-cuda",
            severity="refuse",
            message=f"{of.gpu.in_words} is in hosts with an Arm CPU only ({of.gpu.host}), and the aarch64 "
            "wheels of TensorFlow on the package index are not built with CUDA: no GPU would be found, "
            "without an error",
            remedy="NVIDIA's own TensorFlow image for that platform, or a build from source",
            source=f"{gpus.host_source()}; {fact['source']}",
        )
        return
    yield Finding(
        code="aarch64-wheel-no-cuda",
        severity="refuse",
        message="the aarch64 wheels of TensorFlow on the package index are not built with CUDA, though the "
        "and-cuda extra resolves there: no GPU would be found, without an error",
        remedy="NVIDIA's own TensorFlow image for that platform, a build from source, or linux/amd64",
        source=fact["source"],
    )


def not_linux(of: Subject) -> Iterator[Finding]:
    """Neither Linux on x86_64 nor on aarch64."""
    platform = of.query.platform.lower()
    if not platform or platform in _LINUX or platform in _ARM:
        return
    known = platform in _OTHER
    yield Finding(
        code="platform-unsupported",
        severity="refuse" if known else "unknown",
        message=f"the platform {of.query.platform} "
        + ("is not Linux: these environments are Linux containers" if known else "is not known"),
        remedy="linux/amd64; on Windows inside WSL2, which is Linux",
    )


RELEASE_RULES: tuple[Rule, ...] = (
    Rule("release-unknown", unknown),
    Rule("matrix-table-stale", unknown_patch),
    Rule("facts-of-another-patch", read_from_another),
    Rule("prerelease-not-allowed", prerelease),
    Rule("release-yanked", yanked),
    Rule("aarch64-wheel-no-cuda", aarch64),
    Rule("platform-unsupported", not_linux),
    Rule("python-not-supported-by-tf", python_without_wheel),
    Rule("python-eol", python_ended),
)


def _releases_with(python: str, of: Subject) -> str:
    if not of.known:
        return ""
    last = {minor(release): release for release in of.known.releases if is_final(release)}
    return ", ".join(r for r in last.values() if python in of.known.compiled(r).pythons)
