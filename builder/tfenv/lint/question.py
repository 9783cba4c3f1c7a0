"""A Dockerfile -> the question that its image asks, and what is wrong with the file itself."""

from __future__ import annotations

import re

from tfenv.compat.bases import BASE_RULES
from tfenv.compat.model import Finding, Query
from tfenv.compat.nvidia_tags import TAG_RULES
from tfenv.compat.pins import exact, names, pins

from .contents import CONTENT_RULES
from .dockerfile import Stage, parse
from .installs import TENSORFLOW, debs, pips
from .layers import LAYER_RULES
from .rules import Dockerfile, DockerfileRule

DOCKERFILE_RULES: tuple[DockerfileRule, ...] = (*CONTENT_RULES, *LAYER_RULES)
_OF_BASE = frozenset(rule.code for rule in (*BASE_RULES, *TAG_RULES))


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
    asking = (pip.line for pip in pips(stages[-1]) if names(pip.asked) & set(TENSORFLOW))
    return next(asking, 0)


def _query(stage: Stage) -> Query:
    """What is asked of the final stage; without TensorFlow in it, only its base's name counts."""
    asked = tuple(text for pip in pips(stage) for text in pip.asked)
    base = stage.image.name if stage.image else ""
    if not names(asked) & set(TENSORFLOW):
        counts = bool(stage.image and (stage.image.is_floating or stage.image.tensorflow))
        return Query(base=base if counts else "")
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
        tensorflow=exact(next((pinned[name] for name in TENSORFLOW if name in pinned), "")),
        python=python,
        base=base,
        platform=stage.platform,
        env=tuple(env.items()),
        extra=asked,
    )
