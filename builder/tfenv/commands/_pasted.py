"""What ``tfenv explain`` says of a pasted text: a log, an error message, the output of docker info."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv.commands._common import emit
from tfenv.errors import EXIT_OK, EXIT_UNVERIFIED

if TYPE_CHECKING:
    from tfenv.compat.model import Verdict
    from tfenv.console import Console
    from tfenv.knowledge import Diagnosis
    from tfenv.model import Matrix

STDIN = "-"
_GPU_TOPICS = ("gpu", "gpu-kernels", "nccl", "speed", "xla")
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
    if name == STDIN:
        return True
    path = Path(name)  # a pipe is what the shell makes of <(docker build .)
    return parse_name(name.removeprefix("tfenv:")) is None and (path.is_file() or path.is_fifo())


def read(name: str, console: Console) -> str:
    """The text; of a very long one the beginning and the end."""
    from tfenv.knowledge.reading import take

    if name != STDIN:
        with Path(name).open("rb") as file:
            return take(file)
    if sys.stdin.isatty():
        console.note("paste the text, then type Ctrl-D on a line of its own")
    return take(sys.stdin.buffer)


def gpus_in(text: str, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """The options that say the same as nvidia-smi's output; None if a text is not that, or tells a cause.

    Args:
        asked: the options, which say more than the text.
    """
    from tfenv.knowledge import explain as diagnose
    from tfenv.smi_output import seen

    found = seen(text)
    if found is None or diagnose(text, _given(asked)).causes:
        return None
    return {"gpus": asked.get("gpus") or found.gpus, "driver": asked.get("driver") or found.driver}


def explain(
    text: str, asked: Mapping[str, Any], matrix: Callable[[], Matrix | None], *, as_json: bool
) -> int:
    """Print the answer; return the exit code: 0 a cause is known, or all is harmless; 3 no rule fits.

    Args:
        asked: the options, for what the text leaves out; matrix: reads it, where cells are a remedy.
    """
    from tfenv.knowledge import explain as diagnose
    from tfenv.knowledge.telling import as_data, as_text

    found = diagnose(text, _given(asked))
    verdict = _by_facts(found)
    cells = _cells(found, matrix)
    data = {**as_data(found), "cells": list(cells), "facts": verdict.as_dict() if verdict else None}
    told = [as_text(found)]
    if verdict:
        told += [f"by what is known of TensorFlow {found.values['tensorflow']} and this GPU or driver:"]
        told += [f"  {one.severity} ({one.code}): {one.message}" for one in verdict.findings]
    if cells:
        told.append(f"cells that run there: {', '.join(cells)}")
    refused = verdict is not None and verdict.outcome == "refused"
    if found.outcome == "unknown" and verdict and refused:
        data |= {"outcome": "refuse", "code": verdict.findings[0].code, "layer": "tensorflow"}
        told = told[1:] + told[:1]
    emit(data, as_json=as_json, text="\n".join(told))
    return EXIT_UNVERIFIED if data["outcome"] == "unknown" else EXIT_OK


def _given(asked: Mapping[str, Any]) -> dict[str, str]:
    """The values of the rules that the options give."""
    given = {value: str(asked[option]) for option, value in _GIVEN.items() if asked.get(option)}
    return {**given, "gpu": asked["gpus"][0]} if asked.get("gpus") else given


def _by_facts(found: Diagnosis) -> Verdict | None:
    """What the facts say of release, GPU and driver that the text names, where that is a limit."""
    from tfenv import gpus
    from tfenv.compat.model import Query
    from tfenv.compat.table import judge, known

    values = found.values
    lead = found.causes[0].fit.rule if found.causes else None
    if "tf_cuda" not in values or (lead and set(lead.topics).isdisjoint(_GPU_TOPICS)):
        return None
    named = (values.get(key, "") for key in ("gpu", "compute_capability"))
    gpu = next((name for name in named if gpus.find(name)), "")
    driver = values.get("driver", "")
    if not gpu and not driver:
        return None
    known_gpu = gpus.find(gpu) if gpu else None
    if known_gpu and known_gpu.host and "compute_capability" in values:
        return (
            None  # TensorFlow has found it: a build of its own, of which the facts of the wheels say nothing
        )
    query = Query(tensorflow=values["tensorflow"], gpus=(gpu,) if gpu else (), driver=driver)
    verdict = judge(query, known())
    kept = tuple(one for one in verdict.findings if one.severity in ("refuse", "limit"))
    return replace(verdict, findings=kept) if kept and verdict.outcome in ("refused", "limit") else None


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
