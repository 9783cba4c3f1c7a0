"""A requirement list (requirements.txt, ``pip freeze``, a resolver's message) -> a question and findings."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from tfenv.compat.model import Finding, Query
from tfenv.compat.pins import exact, pins, requirements

_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly")
#: What uv says when a lock names a file that the target has no wheel of.
_NO_WHEEL = re.compile(
    r"(?<![A-Za-z0-9._-])(?P<what>[A-Za-z0-9._-]{1,100}==[A-Za-z0-9.+!]{1,100})[^`\n]{0,300}`? "
    r"can't be installed because it "
    r"doesn't have a source distribution or wheel for the current platform"
)


#: Characters of a requirement: what is longer is none, and would take its parser minutes.
_MOST = 2000


def lint_requirements(
    text: str, *, python: str = "", platform: str = ""
) -> tuple[Query, tuple[Finding, ...]]:
    """The question that a list asks, and what is wrong with the list itself.

    Args:
        text: lines of requirements, or what a resolver printed.
    """
    findings: list[Finding] = []
    for match in _NO_WHEEL.finditer(text):
        findings.append(
            Finding(
                code="lock-no-wheel-for-target",
                severity="refuse",
                message=f"the lock names {match['what']}, of which there is no file for the target: a "
                "lock for all platforms may choose a version that one of them has no wheel of",
                remedy="tell the resolver the targets (tool.uv.required-environments), or lock for the "
                "image's platform and Python alone, as tfenv lock does",
                source="https://github.com/astral-sh/uv/issues/14501",
            )
        )
    lines = listed(text)
    pinned = pins(lines)
    release = exact(next((pinned[name] for name in _TENSORFLOW if name in pinned), ""))
    if not release and not findings:
        findings.append(_not_pinned(lines))
    return Query(
        tensorflow=release, python=python, platform=platform, extra=lines, cuda_source=_source(lines)
    ), tuple(findings)


def listed(text: str) -> tuple[str, ...]:
    """The requirements of a list, without comments, hashes, options and continued lines."""
    joined = re.sub(r"\\\r?\n", " ", text)
    found = []
    for line in joined.splitlines():
        bare = re.sub(r"(^|\s)#.*", "", line)
        bare = re.sub(r"\s--?[a-z][\w-]*(=|\s+)\S+", "", bare).strip()
        if len(bare) <= _MOST and re.match(r"[A-Za-z0-9]", bare):
            found.append(bare)
    return tuple(found)


def _source(lines: tuple[str, ...]) -> str:
    return "wheels" if any("and-cuda" in line for line in lines) else ""


def _not_pinned(lines: tuple[str, ...]) -> Finding:
    names = [canonicalize_name(one.name) for one in requirements(lines)]
    there = any(name in _TENSORFLOW for name in names)
    return Finding(
        code="tensorflow-not-pinned",
        severity="lint" if there else "unknown",
        message="TensorFlow is listed without ==, so the list means another release from day to day"
        if there
        else "no TensorFlow is listed, so nothing can be said of it",
        remedy="pin it: tensorflow==X.Y.Z",
    )
