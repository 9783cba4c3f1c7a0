"""The schema's complaints in plain words: where, what was found, what was expected."""

from __future__ import annotations

import difflib
import json
import re
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from .patterns import EXPECTED
from .schema import BASE_KINDS, MatrixSpec
from .yamlfile import OF_KEY, Document, Location, Problem, describe, failure

_REMEDY = "correct matrix.yaml; an editor that knows matrix.schema.json completes and checks it"

_KINDS = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_too_long": "a shorter text",
    "too_short": "at least one entry",
}


def validate(document: Document) -> MatrixSpec:
    """The matrix that a document holds.

    Raises:
        MatrixError: every violation of the schema, each with file, line and column.
    """
    if document.data is None:
        raise failure(
            document.path,
            [Problem(1, 1, f"found an empty file; expected the keys {_names(MatrixSpec)}")],
            remedy=_REMEDY,
        )
    try:
        return MatrixSpec.model_validate(document.data)
    except ValidationError as error:
        problems = [_problem(document, details) for details in error.errors(include_url=False)]
        raise failure(document.path, problems, remedy=_REMEDY) from None


def dotted(where: Location) -> str:
    """A place in the file as people write it: ``rows[0].tensorflow``."""
    text = ""
    for part in where:
        if part == OF_KEY:
            break
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = re.fullmatch(r"[\w.-]{1,60}", part, re.ASCII)
            text += ("." if text else "") + (part if plain else json.dumps(part[:60]))
    return text or "matrix.yaml"


def _problem(document: Document, details: Any) -> Problem:
    kind = details["type"]
    where: Location = _in_file(tuple(details["loc"]))
    if kind == "extra_forbidden":
        return _unknown_key(document, where, _model_at(tuple(details["loc"])[:-1]))
    if kind == "missing":
        message = f"{dotted(where[:-1])}: found no {where[-1]}; expected one"
    else:
        message = f"{dotted(where)}: found {describe(details['input'])}; expected {_expected(details)}"
    return Problem(*document.at(where), message)


def _in_file(where: Location) -> Location:
    """A place as the file has it: pydantic puts a base's kind after its name."""
    if where[:1] == ("bases",) and len(where) > 2 and where[2] in BASE_KINDS:
        return (*where[:2], *where[3:])
    return where


def _expected(details: Any) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "union_tag_invalid":
        return f"the kind {' or '.join(BASE_KINDS)}"
    if kind == "union_tag_not_found":
        return f"a mapping with a kind: {' or '.join(BASE_KINDS)}"
    if kind == "string_pattern_mismatch":
        return EXPECTED[context["pattern"]]
    if kind == "literal_error":
        return str(context["expected"]).replace("'", "")
    if kind == "value_error":
        return f"a real date and time ({context['error']})"
    return _KINDS.get(kind, str(details["msg"]))


def _unknown_key(document: Document, where: Location, model: type[BaseModel]) -> Problem:
    line, column = document.at((*where, OF_KEY))
    key = str(where[-1])
    near = difflib.get_close_matches(key, model.model_fields, n=1, cutoff=0.5)
    hint = f'"{near[0]}" (did you mean it?)' if near else f"one of {_names(model)}"
    shown = json.dumps(key if len(key) <= 60 else key[:57] + "...")
    return Problem(line, column, f"{dotted(where[:-1])}: found the key {shown}; expected {hint}")


def _model_at(where: Location) -> type[BaseModel]:
    """The model that describes the mapping at a place of the file."""
    current: Any = MatrixSpec
    for part in where:
        if part in BASE_KINDS and not isinstance(current, type):
            current = BASE_KINDS[str(part)]
        elif isinstance(current, type) and issubclass(current, BaseModel):
            current = current.model_fields[str(part)].annotation
        else:
            current = get_args(current)[-1]  # the values of a dict, the items of a list
    model: type[BaseModel] = current
    return model


def _names(model: type[BaseModel]) -> str:
    return ", ".join(model.model_fields)
