"""Rules about the packages and variables beside TensorFlow, from a table: facts/packages.json."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tfenv.factfiles import read
from tfenv.versions import minor, order

from .model import Finding, Severity
from .pins import names as named
from .pins import pins, requirements
from .rules import Rule
from .subject import Subject

#: In the table instead of a range: the package's minor release has to be TensorFlow's.
SAME_MINOR = "same minor"
_LINUX = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}


def must_be(code: str, of: Subject) -> Iterator[Finding]:
    """A pinned package is not in the range that the table gives for the release."""
    pinned = pins(of.query.extra)
    for row in read("packages")["pins"]:
        version = pinned.get(row["package"])
        if row["code"] != code or not version or not of.release or not _holds(row["tensorflow"], of.release):
            continue
        if row["must_be"] == SAME_MINOR:
            fits, wanted = minor(version) == minor(of.release), f"=={minor(of.release)}.*"
        else:
            fits, wanted = version in SpecifierSet(row["must_be"], prereleases=True), row["must_be"]
        if not fits:
            severity: Severity = row.get("severity", "refuse")
            yield Finding(
                code=code,
                severity=severity,
                message=f"TensorFlow {of.release} wants {row['package']}{wanted}, and {row['package']} "
                f"{version} is pinned: {row['why']}",
                remedy=f"{row['package']}{wanted}",
                source=row["source"],
            )


def conflict(of: Subject) -> Iterator[Finding]:
    """Two pinned packages that do not go together, or one that TensorFlow's own metadata excludes."""
    yield from must_be("lock-conflict", of)
    pinned = pins(of.query.extra)
    for row in read("packages")["needs"]:
        version, other = pinned.get(row["package"]), pinned.get(row["needs"])
        if not version or not other or version not in SpecifierSet(row["version"]):
            continue
        if order(other) >= order(row["at_least"]):
            continue
        capped = _caps(row["needs"], of.release)
        because = f", and TensorFlow {minor(of.release)} allows only {row['needs']}{capped}" if capped else ""
        yield Finding(
            code="lock-conflict",
            severity="refuse",
            message=f"{row['package']} {version} needs {row['needs']}>={row['at_least']}, and {other} is "
            f"pinned{because}",
            remedy=f"an older {row['package']}, or a TensorFlow without that cap; resolve everything in "
            "one run",
            source=row["source"],
        )


def excluded_by_metadata(of: Subject) -> Iterator[Finding]:
    """A package, pinned or bounded, that the wheel's metadata excludes and no other rule speaks of."""
    if not of.known or not of.release:
        return
    pinned = pins(of.query.extra)
    told = {row["package"] for row in read("packages")["pins"] if _holds(row["tensorflow"], of.release)}
    ranges = {canonicalize_name(one.name): one.specifier for one in requirements(of.query.extra)}
    here = {"extra": "", **_LINUX, "python_version": minor(of.query.python or "3")}
    for wanted in requirements(of.known.requires(of.inherited_from or of.release)):
        name = canonicalize_name(wanted.name)
        version = pinned.get(name)
        if wanted.marker and not wanted.marker.evaluate(here):
            continue
        asked = ranges.get(name)
        if not version and asked and not _meet(asked, wanted.specifier):
            yield Finding(
                code="excluded-by-metadata",
                severity="refuse",
                message=f"TensorFlow {of.release} asks for {name}{wanted.specifier}, and {name}{asked} is "
                "listed: no version is both",
                remedy=f"{name}{wanted.specifier}",
                source="Requires-Dist of the release's wheels",
            )
        if version and name not in told and not wanted.specifier.contains(version, prereleases=True):
            yield Finding(
                code="excluded-by-metadata",
                severity="refuse",
                message=f"TensorFlow {of.release} asks for {name}{wanted.specifier}, and {version} is pinned",
                remedy="resolve everything in one run; in an image, `pip check` tells",
                source="Requires-Dist of the release's wheels",
            )


def foreign_platform(of: Subject) -> Iterator[Finding]:
    """A package that exists for another operating system only."""
    table = read("packages")["foreign"]
    for requirement in requirements(of.query.extra):
        name = canonicalize_name(requirement.name)
        if name in table["rows"] and not requirement.marker:
            yield Finding(
                code="lock-foreign-platform",
                severity="refuse",
                message=f"{name} exists for {table['rows'][name]} only: the list was made on another "
                "system, and 'No matching distribution found' is what pip says on Linux",
                remedy=f"take {name} out, and lock on Linux or for it",
                source=table["source"],
            )


def tensorflow_gpu(of: Subject) -> Iterator[Finding]:
    """tensorflow-gpu of after its end."""
    table = read("packages")["tensorflow_gpu"]
    version = pins(of.query.extra).get("tensorflow-gpu")
    if version and order(version) > order(table["last"]):
        yield Finding(
            code="tensorflow-gpu-ended",
            severity="refuse",
            message=f"there is no tensorflow-gpu {version}: {table['last']} was the last",
            remedy=f"tensorflow=={version}, which is the same with GPU support",
            source=table["source"],
        )


def two_cuda_majors(of: Subject) -> Iterator[Finding]:
    """NVIDIA's wheels of two CUDA major versions."""
    names = named(of.query.extra)
    majors = sorted({name[-4:] for name in names if name.startswith("nvidia-") and name[-4:-2] == "cu"})
    if len(majors) > 1:
        yield Finding(
            code="two-cuda-majors",
            severity="lint",
            message=f"NVIDIA's wheels of more than one CUDA are listed: {', '.join(majors)}. They are "
            "unpacked into the same folders nvidia/*/lib, and the later one wins",
            remedy="keep those of the CUDA that TensorFlow was compiled for",
        )


def apart(of: Subject) -> Iterator[Finding]:
    """A list without what TensorFlow needs for a part of itself, and does not ask for."""
    names = named(of.query.extra)
    for row in read("packages")["apart"]:
        if names and of.release and _holds(row["tensorflow"], of.release) and row["package"] not in names:
            yield Finding(
                code="not-a-dependency",
                severity="warn",
                message=f"{row['package']} is not listed: with TensorFlow {minor(of.release)} {row['why']}",
                remedy=f"list {row['package']} too",
                source=row["source"],
            )


def nccl_from_outside(of: Subject) -> Iterator[Finding]:
    """NVIDIA's wheels without NCCL, for a release that does not bring it."""
    if not of.facts or of.facts.nccl_how != "loaded" or of.source != "wheels" or of.query.by_tfenv:
        return
    names = named(of.query.extra)
    by_name = any(name.startswith("nvidia-") for name in names)
    if not by_name or any("and-cuda" in text for text in of.query.extra):
        return
    if not any(name.startswith("nvidia-nccl-") for name in names):
        yield Finding(
            code="nccl-not-installed",
            severity="limit",
            message=f"one GPU only: TensorFlow {of.release} loads libnccl.so.2 from outside, and no "
            "nvidia-nccl wheel is listed",
            remedy=f"list nvidia-nccl-cu{of.facts.cuda.split('.')[0]} too",
            source=of.facts.source.get("nccl", ""),
        )


def legacy_keras(of: Subject) -> Iterator[Finding]:
    """TF_USE_LEGACY_KERAS without the package that it makes TensorFlow look for."""
    table = read("packages")["legacy_keras"]
    value = dict(of.query.env).get("TF_USE_LEGACY_KERAS", "")
    if value.lower() not in ("1", "true") or not of.release:
        return
    names = named(of.query.extra)
    if "tf-keras" in names:
        return
    tf = minor(of.release)
    old = order(tf) < order(table["since"])
    yield Finding(
        code="legacy-keras-var-without-package",
        severity="lint",
        message=f"TF_USE_LEGACY_KERAS={value} makes TensorFlow {tf} look for tf_keras, which is not installed"
        + (f"; before {table['since']} the Keras of TensorFlow is Keras 2 anyway" if old else ""),
        remedy=f"leave the variable out, or install tf-keras=={tf}.*",
        source=table["source"],
    )


_OWN = {"lock-conflict"}
PACKAGE_RULES: tuple[Rule, ...] = (
    *(
        Rule(code, partial(must_be, code))
        for code in dict.fromkeys(row["code"] for row in read("packages")["pins"])
        if code not in _OWN
    ),
    Rule("lock-conflict", conflict),
    Rule("excluded-by-metadata", excluded_by_metadata),
    Rule("lock-foreign-platform", foreign_platform),
    Rule("tensorflow-gpu-ended", tensorflow_gpu),
    Rule("two-cuda-majors", two_cuda_majors),
    Rule("not-a-dependency", apart),
    Rule("nccl-not-installed", nccl_from_outside),
    Rule("legacy-keras-var-without-package", legacy_keras),
)


def _meet(one: SpecifierSet, other: SpecifierSet) -> bool:
    """Whether a version can be in both ranges: if so, there is one at a bound, or just above it."""
    bounds = [spec.version.removesuffix(".*") for spec in (*one, *other)]
    tried = ["0", *bounds, *(f"{bound}.1" for bound in bounds)]
    both = one & other
    return any(both.contains(version, prereleases=True) for version in tried)


def _holds(specifier: str, release: str) -> bool:
    return minor(release) in SpecifierSet(specifier)


def _caps(package: str, release: str) -> str:
    rows: list[Any] = read("packages")["pins"]
    fitting = [r for r in rows if r["package"] == package and release and _holds(r["tensorflow"], release)]
    return str(fitting[0]["must_be"]) if fitting else ""
