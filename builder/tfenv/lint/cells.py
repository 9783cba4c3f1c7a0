"""A foreign list of cells (YAML: ``cells:``, each with tensorflow, python, base ...) -> questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfenv.compat.model import Finding, Query
from tfenv.errors import UsageError

#: What a list may say of a cell, and the part of the question that it is.
_TEXT = {
    "tensorflow": "tensorflow",
    "python": "python",
    "base": "base",
    "cuda": "cuda",
    "cudnn": "cudnn",
    "cuda_source": "cuda_source",
    "cuda_from": "cuda_source",
    "python_source": "python_source",
    "platform": "platform",
    "driver": "driver",
}
_LISTS = {"gpu": "gpus", "gpus": "gpus", "targets": "gpus", "extra_pip": "extra", "extra": "extra"}


def read_cells(text: str) -> tuple[tuple[Query, tuple[Finding, ...]], ...]:
    """The question that each cell of a list asks, and what of it is not understood.

    What stands beside ``cells:``, such as ``targets:``, holds for every cell.

    Raises:
        UsageError: it is no such list.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        data = YAML(typ="base", pure=True).load(text)  # all is text: 3.10 stays 3.10
    except (YAMLError, RecursionError) as error:
        why = str(error) if isinstance(error, YAMLError) else "it is nested too deeply"
        raise UsageError(f"the list of cells is no YAML: {why}", remedy="correct it") from error
    cells = data.get("cells") if isinstance(data, Mapping) else data
    if not isinstance(cells, list) or not all(isinstance(cell, Mapping) for cell in cells):
        raise UsageError(
            "the list of cells has no 'cells:' with one entry a cell",
            remedy="write: cells: [{tensorflow: '2.15.1', python: '3.11', base: IMAGE}]; "
            "tfenv's own matrix.yaml is checked by: tfenv list --refused",
        )
    shared = (
        {key: value for key, value in data.items() if key != "cells"} if isinstance(data, Mapping) else {}
    )
    try:
        return tuple(_query({**shared, **cell}) for cell in cells)
    except ValueError as error:
        raise UsageError(
            f"the list of cells cannot be read: {error}",
            remedy="give every key of a cell a text, or a list of texts; env: {NAME: VALUE}",
        ) from error


def _text(value: Any) -> str:
    # Never by str() of what is nested: with aliases, ten short lines of YAML are gigabytes of text.
    if isinstance(value, (Mapping, list)):
        raise ValueError("a list or a mapping stands where a text belongs")
    return "" if value is None else str(value)


def _setting(text: str) -> tuple[str, str]:
    name, there, value = text.partition("=")
    if not there:
        raise ValueError(f"env has {text[:80]!r}, which sets nothing")
    return name, value


def _query(cell: Mapping[str, Any]) -> tuple[Query, tuple[Finding, ...]]:
    values: dict[str, Any] = {}
    ignored: list[Finding] = []
    for key, value in cell.items():
        if key in _TEXT:
            values[_TEXT[key]] = _text(value)
        elif key in _LISTS:
            values[_LISTS[key]] = tuple(map(_text, value if isinstance(value, list) else [value]))
        elif key == "env":
            several = value if isinstance(value, list) else [value] if value else []
            pairs = value.items() if isinstance(value, Mapping) else (_setting(_text(v)) for v in several)
            values["env"] = tuple((_text(name), _text(setting)) for name, setting in pairs)
        else:
            known = ", ".join((*_TEXT, *_LISTS, "env"))
            ignored.append(
                Finding(
                    code="cell-key-unknown",
                    severity="warn",
                    message=f"'{key}' of a cell is not judged",
                    remedy=f"known: {known}",
                )
            )
    if not any(values.values()):
        message = "there is nothing in this cell that can be judged"
        ignored.append(Finding(code="cell-empty", severity="unknown", message=message))
    return Query(**values), tuple(ignored)
