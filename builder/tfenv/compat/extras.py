"""Rules about CUDA from NVIDIA's wheels: the and-cuda extra, and whether TensorFlow finds them."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tfenv.factfiles import read
from tfenv.versions import minor, order

from . import kernels
from .model import Finding
from .pins import requirements
from .rules import Rule
from .subject import Subject, asks_for_wheels

_ANY = SpecifierSet()


def extra_unresolvable(of: Subject) -> Iterator[Finding]:
    """The and-cuda extra pins what nobody can install."""
    if not of.facts or not (of.query.by_tfenv or _by_extra(of)):
        return
    for row in read("packages")["unresolvable_extras"]:
        fits = of.release in SpecifierSet(row["tensorflow"], prereleases=True)
        if fits and (not row["pythons"] or minor(of.query.python or "0.0") in row["pythons"]):
            why = f"tensorflow[and-cuda]=={of.release} cannot be resolved: {row['why']}"
            ours = of.query.by_tfenv
            yield Finding(
                code="extra-unresolvable",
                severity="warn" if ours else "refuse",
                message=f"{why}. A cell names NVIDIA's wheels one by one instead" if ours else why,
                remedy=""
                if ours
                else "leave the extra out and name NVIDIA's wheels one by one, as tfenv does",
                source=row["source"],
            )


def extra_missing(of: Subject) -> Iterator[Finding]:
    """The release has no and-cuda extra, so pip installs nothing for it."""
    if not of.facts or of.query.by_tfenv or not any("and-cuda" in text for text in of.query.extra):
        return
    first = read("packages")["first_extra"]
    if order(minor(of.release)) < order(first["tensorflow"]):
        yield Finding(
            code="extra-missing",
            severity="lint",
            message=f"TensorFlow {of.release} has no extra and-cuda (the first is "
            f"{first['tensorflow']}): pip only warns, and no CUDA library is installed",
            remedy="name NVIDIA's wheels one by one, or take them from an nvidia/cuda base",
            source=first["source"],
        )


def wheels_not_on_loader_path(of: Subject) -> Iterator[Finding]:
    """TensorFlow does not look for libraries where NVIDIA's wheels put them."""
    if not of.facts or of.query.by_tfenv or of.source != "wheels" or _sets_path(of):
        return
    for row in read("packages")["loader_path"]:
        if of.release in SpecifierSet(row["tensorflow"], prereleases=True):
            yield Finding(
                code="pip-cuda-libs-not-on-loader-path",
                severity="refuse",
                message=f"TensorFlow {of.release} does not find the CUDA libraries of NVIDIA's wheels in "
                f"site-packages/nvidia/*/lib: {row['why']}. It says 'Cannot dlopen some GPU libraries' "
                "and runs on the CPU; TF_CPP_MAX_VLOG_LEVEL=3 makes it name the missing one",
                remedy="put every site-packages/nvidia/*/lib into /etc/ld.so.conf.d and run ldconfig "
                "(tfenv does), or on LD_LIBRARY_PATH; or take another patch release",
                source=row["source"],
            )
            return


def extra_too_new(of: Subject) -> Iterator[Finding]:
    """The and-cuda extra leaves its cuDNN open, and the newest have no code for the GPU."""
    if not of.facts or not of.gpu or not of.known or of.cudnn or of.query.by_tfenv or not _by_extra(of):
        return
    since = kernels.dropped_since("cudnn", of.facts.cudnn, of.gpu.capability)
    capped = {canonicalize_name(one.name): one.specifier for one in requirements(of.query.extra)}
    for wanted in requirements(of.known.requires(of.inherited_from or of.release)):
        name = canonicalize_name(wanted.name)
        if since and name.startswith("nvidia-cudnn-") and since in wanted.specifier & capped.get(name, _ANY):
            yield Finding(
                code="extra-cudnn-too-new",
                severity="refuse",
                message=f"tensorflow[and-cuda]=={of.release} asks for {name}{wanted.specifier}: the newest "
                f"is installed, and from cuDNN {since} on it has no code for {of.gpu.in_words}",
                remedy=f"add to the requirements: {name}<{since}",
                source=kernels.source("cudnn"),
            )


EXTRA_RULES: tuple[Rule, ...] = (
    Rule("extra-unresolvable", extra_unresolvable),
    Rule("extra-missing", extra_missing),
    Rule("extra-cudnn-too-new", extra_too_new),
    Rule("pip-cuda-libs-not-on-loader-path", wheels_not_on_loader_path),
)


def _by_extra(of: Subject) -> bool:
    return any("and-cuda" in text for text in of.query.extra) or (
        of.source == "wheels" and not asks_for_wheels(of.query)
    )


def _sets_path(of: Subject) -> bool:
    return any(name == "LD_LIBRARY_PATH" and "nvidia" in value for name, value in of.query.env)
