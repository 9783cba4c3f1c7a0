"""What TensorFlow's small text files say about its build: pure functions of their text."""

from __future__ import annotations

import ast
import re
from email.parser import HeaderParser
from typing import Any

from tfenv.errors import IntegrityError

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S.*)$", re.MULTILINE)
_VALUE = re.compile(r'"?([\w., -]*)"?')
_COMMENT = re.compile(r"//|/\*")
# The largest that a release has is of 2 kB; a nested one of megabytes takes a parser's gigabytes.
_MOST_INFO = 1 << 16
_KINDS = (bool, str, list)


def defines(text: str, wanted: re.Pattern[str]) -> dict[str, str]:
    """The macros of a C header whose names match, without quotes; empty values are left out."""
    found = {name: _value(rest) for name, rest in _DEFINE.findall(text) if wanted.fullmatch(name)}
    return {name: value for name, value in found.items() if value}


def _value(rest: str) -> str:
    match = _VALUE.fullmatch(_COMMENT.split(rest, maxsplit=1)[0].strip())
    return match[1].strip() if match else ""


def build_info(text: str) -> dict[str, Any]:
    """The dictionary in TensorFlow's build_info.py, read without running it.

    Raises:
        IntegrityError: there is none.
    """
    try:
        for node in ast.parse(text if len(text) <= _MOST_INFO else "").body:
            named = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "build_info"
            if named and isinstance(node.value, ast.Call) and node.value.args:  # type: ignore[attr-defined]
                found = dict(ast.literal_eval(node.value.args[0]))  # type: ignore[attr-defined]
                return {k: v for k, v in sorted(found.items()) if isinstance(v, _KINDS)}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass  # the last two: of a parser, for what is nested too deeply
    raise IntegrityError(
        "build_info.py holds no build_info = collections.OrderedDict([...])",
        remedy="this TensorFlow is made in another way than those known: please report its version",
    )


def metadata(text: str) -> dict[str, Any]:
    """Name, version, Requires-Python and the Requires-Dist lines of a METADATA file."""
    message = HeaderParser().parsestr(text)
    return {
        "name": message.get("Name", ""),
        "version": message.get("Version", ""),
        "requires_python": message.get("Requires-Python", ""),
        "requires": sorted(" ".join(line.split()) for line in message.get_all("Requires-Dist", [])),
    }


def dotted(number: str) -> str:
    """CUDA_VERSION as people write it: ``12020`` is ``12.2``.

    Raises:
        IntegrityError: it is no such number.
    """
    if not re.fullmatch("[0-9]{4,6}", number):
        raise IntegrityError(f"CUDA_VERSION is {number[:40]!r}", remedy="this wheel's cuda.h is damaged")
    value = int(number)
    return f"{value // 1000}.{value % 1000 // 10}"
