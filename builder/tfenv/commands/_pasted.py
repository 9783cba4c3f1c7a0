"""What ``tfenv explain`` says of a pasted text: a log, an error message, the output of docker info."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv.commands._common import emit
from tfenv.errors import EXIT_OK, EXIT_UNVERIFIED

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.knowledge import Diagnosis
    from tfenv.model import Matrix

STDIN = "-"
#: Option -> the value of the rules that it gives.
_GIVEN = {
    "tensorflow": "tensorflow",
    "python": "python",
    "driver": "driver",
    "cudnn": "cudnn_package",
    "cuda": "cuda",
}


def is_text(name: str | None) -> bool:
    """Whether the argument is a text to read: ``-``, or a file whose name is not that of a cell."""
    from tfenv.cells import parse_name

    if not name:
        return False
    return name == STDIN or (parse_name(name.removeprefix("tfenv:")) is None and Path(name).is_file())


def read(name: str, console: Console) -> str:
    """The text; of a very long one the beginning and the end."""
    from tfenv.knowledge.reading import take

    if name != STDIN:
        with Path(name).open("rb") as file:
            return take(file)
    if sys.stdin.isatty():
        console.note("paste the text, then type Ctrl-D on a line of its own")
    return take(sys.stdin.buffer)


def explain(
    text: str, asked: Mapping[str, Any], matrix: Callable[[], Matrix | None], *, as_json: bool
) -> int:
    """Print the answer; return the exit code: 0 a cause is known, or all is harmless; 3 no rule fits.

    Args:
        asked: the options, for what the text leaves out; matrix: reads it, where cells are a remedy.
    """
    from tfenv.knowledge import explain as diagnose
    from tfenv.knowledge.telling import as_data, as_text

    given = {value: str(asked[option]) for option, value in _GIVEN.items() if asked.get(option)}
    if asked.get("gpus"):
        given["gpu"] = asked["gpus"][0]
    found = diagnose(text, given)
    cells = _cells(found, matrix)
    told = as_text(found) + (f"\ncells that run there: {', '.join(cells)}" if cells else "")
    emit({**as_data(found), "cells": list(cells)}, as_json=as_json, text=told)
    return EXIT_UNVERIFIED if found.outcome == "unknown" else EXIT_OK


def _cells(found: Diagnosis, matrix: Callable[[], Matrix | None]) -> tuple[str, ...]:
    """Names of the cells that run with the driver or GPU of the text, where that is a remedy."""
    if not found.causes or not found.causes[0].fit.rule.cells:
        return ()
    from tfenv import gpus
    from tfenv.compat.model import Query
    from tfenv.compat.table import known
    from tfenv.explaining import answer

    values = found.causes[0].fit.values
    gpu = values.get("gpu") or values.get("compute_capability", "")
    query = Query(gpus=(gpu,) if gpu and gpus.find(gpu) else (), driver=values.get("driver", ""))
    if not query.gpus and not query.driver:
        return ()
    return tuple(choice.tag for choice in answer(query, known(), matrix()).choices)
