"""What a pasted text is: a list of cells, a Dockerfile, requirements, or the output of a program."""

from __future__ import annotations

import re
from typing import Literal

Sort = Literal["cells", "dockerfile", "requirements", "output"]

_LINES = 400  # that decide
_INSTRUCTION = re.compile(
    r"(?:FROM|RUN|ARG|ENV|COPY|ADD|WORKDIR|USER|LABEL|CMD|ENTRYPOINT|EXPOSE|VOLUME|SHELL|HEALTHCHECK|ONBUILD"
    r"|STOPSIGNAL|MAINTAINER) +\S"
)
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}(?:\[[A-Za-z0-9,._ -]{0,100}\])? ?(?:[=<>!~]=?=?|@) ?[^\s;].{0,200}"
    r"|[A-Za-z0-9][A-Za-z0-9._-]{0,100}(?:\[[A-Za-z0-9,._ -]{0,100}\])?"
    r"|-{1,2}[a-z][a-z-]{0,40}[ =]\S.{0,300}"
)
_PINNED = re.compile(r"[A-Za-z0-9\]] ?(?:==|>=|<=|~=|!=|<|>) ?[0-9]")


def sort_of(text: str) -> Sort:
    """What a text is. Whatever is not clearly written by people as a file is output."""
    lines = [line.rstrip() for line in text.splitlines()[:_LINES]]
    content = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not content:
        return "output"
    if any(line.startswith("cells:") for line in content):
        return "cells"
    if _is_dockerfile(content):
        return "dockerfile"
    return "requirements" if _is_requirements(content) else "output"


def _is_dockerfile(content: list[str]) -> bool:
    goes_on = False
    for line in content:
        if not goes_on and not line[:1].isspace() and not _INSTRUCTION.match(line):
            return False
        goes_on = line.endswith("\\")
    return bool(_INSTRUCTION.match(content[0]))


def _is_requirements(content: list[str]) -> bool:
    starts = [
        line for before, line in zip(["", *content], content, strict=False) if not before.endswith("\\")
    ]
    return all(_REQUIREMENT.fullmatch(line.split(" #")[0].rstrip("\\ ")) for line in starts) and any(
        _PINNED.search(line) for line in starts
    )
