"""Pages of one file: what those of the matrix and of troubleshooting are made with, and compared by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.errors import DriftError

if TYPE_CHECKING:
    import jinja2


@cache
def templates(folder: Path) -> jinja2.Environment:
    """The templates in a folder; what they are given is escaped."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
    )


def style(own: Path) -> str:
    """The rules that all pages have in common, then those of the page itself."""
    return Path(__file__).with_name("webpage.css").read_text("utf-8") + own.read_text("utf-8")


def embedded(value: object) -> str:
    """JSON that cannot end the script element it is in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def drift(files: Mapping[Path, str]) -> tuple[Path, ...]:
    """The files that are missing or say something else than the text that they should have."""
    return tuple(
        path for path, text in files.items() if not path.is_file() or path.read_bytes() != text.encode()
    )


def raise_drift(changed: tuple[Path, ...], *, what: str, command: str) -> None:
    """Refuse files that are not current, if there are any.

    Args:
        what: the sentence's subject and verb, e.g. ``the matrix page is not what the matrix gives``.
        command: writes them.

    Raises:
        DriftError: names every file.
    """
    if changed:
        raise DriftError(
            f"{what}:\n  " + "\n  ".join(map(str, changed)),
            remedy=f"type: {command}   and commit the result",
        )
