"""From what was typed after ``tfenv explain``, and the file that it names, to questions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv.errors import UsageError
from tfenv.gpus import as_named

if TYPE_CHECKING:
    from tfenv.compat.model import Finding, Query
    from tfenv.model import Matrix

#: Parts of a question that are versions: their name, and how one looks.
_VERSIONS = {
    "tensorflow": ("TensorFlow", "2.18 or 2.18.1"),
    "python": ("Python", "3.11"),
    "cuda": ("CUDA", "12.2"),
    "cudnn": ("cuDNN", "8.9"),
    "driver": ("the driver", "535.104.05, or its branch, 535: nvidia-smi tells it"),
}
_NUMBERS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}")
_RELEASE = re.compile(_NUMBERS.pattern + r"((a|b|rc)[0-9]{1,9})?(\.(post|dev)[0-9]{1,9})*")
_MOST = 1 << 20  # bytes of a file: a list of hundreds of packages with their hashes has fewer
_NAMED = 5  # environments in a message


def content_of(requirements: Path | None, dockerfile: Path | None, cells: Path | None) -> tuple[str, str]:
    """What sort the file is that was named, and its text; empty if none was."""
    from tfenv.files import read_text

    for sort, path in (("requirements", requirements), ("dockerfile", dockerfile), ("cells", cells)):
        if path:
            return sort, read_text(path, _MOST)
    return "", ""


def questions(base: Query, sort: str, content: str) -> Iterator[tuple[Query, tuple[Finding, ...]]]:
    """The question, or the questions that a text asks, each with what is wrong with the text."""
    from tfenv.lint import lint_dockerfile, lint_requirements, read_cells

    if sort == "cells":
        for query, found in read_cells(content):
            yield _merged(query, base), found
    elif sort:
        query, found = (lint_dockerfile if sort == "dockerfile" else lint_requirements)(content)
        yield _merged(query, base), found
    else:
        yield base, ()


def query_of(name: str | None, asked: Mapping[str, Any], from_file: bool, matrix: Matrix | None) -> Query:
    """What a cell's name, or part of one, and the options ask together.

    Args:
        asked: the options by what they say; from_file: a file asks, too.

    Raises:
        UsageError: the name is none, something is said twice, or nothing is asked.
    """
    from tfenv.compat.model import Query

    given = {key: value for key, value in asked.items() if value}
    allow = given.pop("pre", False)
    if name:
        named = _named(name, matrix)
        if twice := [key for key, value in named.items() if given.get(key, value) != value]:
            raise UsageError(f"{', '.join(twice)} is said twice, and differently", remedy="say it once")
        given = {**named, **given}
        if given.get("tensorflow") == "latest":
            given["tensorflow"] = _latest(matrix)
    if not given and not from_file:
        raise UsageError(
            "nothing is asked",
            remedy="type e.g.: tfenv explain 2.14 --python 3.11, tfenv explain --gpu 'RTX 5090', "
            "or with the output of what failed: tfenv explain train.log",
        )
    given["gpus"] = tuple(dict.fromkeys(map(as_named, given.get("gpus", ()))))
    return Query(**given, allow_prerelease=allow)


def _named(name: str, matrix: Matrix | None) -> dict[str, str]:
    """What a name says of releases, libraries, Python and base."""
    from tfenv.cells import parse_name

    bare = name.removeprefix(f"{matrix.repository}:") if matrix else name
    parts = parse_name(bare.removeprefix("tfenv:"))
    if parts is None:
        own = [one.name for one in matrix.environments] if matrix else []
        also = f", an environment ({', '.join(own[:_NAMED])})" if own else ""
        raise UsageError(
            f"'{name}' is not the name of a cell, nor part of one",
            remedy=f"name a cell, e.g. 2.15-cu12{also}, a file that is there, or - for what is piped in",
        )
    found = {"tensorflow": parts.release}
    found |= {part: getattr(parts, part) for part in ("cuda", "cudnn", "python", "base")}
    return {part: value for part, value in found.items() if value}


def require_versions(query: Query) -> None:
    """Raises UsageError: something that has to be a version is none."""
    for what, (name, example) in _VERSIONS.items():
        value = getattr(query, what)
        # The first number of a TensorFlow or a Python alone says nothing.
        alone = what in ("tensorflow", "python") and "." not in value
        known = _RELEASE if what == "tensorflow" else _NUMBERS
        if value and (alone or not known.fullmatch(value)):
            raise UsageError(
                f"'{value[:80]}' is no version of {name}", remedy=f"give a version such as {example}"
            )


def _latest(matrix: Matrix | None) -> str:
    from tfenv.facts import releases
    from tfenv.versions import is_final, order

    there = [cell.row.tensorflow for cell in matrix.cells] if matrix else list(releases())
    return max(filter(is_final, there), key=order, default="")


def _merged(query: Query, given: Query) -> Query:
    """What a file asks, with what was typed beside it."""
    return replace(query, **{key: value for key, value in asdict(given).items() if value})
