"""Small helpers of the probes."""

from __future__ import annotations

import json
import re
from typing import Any

VERSION = r"\d{2,4}\.\d{2,4}(?:\.\d{1,4})?"


def yes(value: object) -> str:
    """``yes`` or ``no``."""
    return "yes" if value else "no"


def find(pattern: str, text: str, flags: int = re.MULTILINE) -> str:
    """The first group of a pattern in a text; empty where it is not there."""
    found = re.search(pattern, text, flags)
    return found.group(1).strip() if found else ""


def one_line(text: str, most: int = 200) -> str:
    """A text as one short line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def short_lines(text: str, most: int = 300, lines: int = 400) -> str:
    """A text whose lines are short, so that no pattern takes long on it; the last ones."""
    return "\n".join(line[:most] for line in text.splitlines()[-lines:])


def listed(names: list[str], most: int = 4) -> str:
    """Names in a row, the first ones of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(names: list[str]) -> str:
    """``2 x H200, T4``."""
    kinds = dict.fromkeys(names)
    return ", ".join(f"{names.count(k)} x {k}" if names.count(k) > 1 else k for k in kinds)


def parsed(text: str) -> dict[str, Any]:
    """A JSON object; empty where the text is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
