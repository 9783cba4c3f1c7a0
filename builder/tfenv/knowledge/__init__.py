"""What is known of failures: rules as data, and the answer that they give for a pasted text.

``explain(text)`` reads a text; ``library.load`` reads and checks the rules, which the files of ``rules/``
hold: README.md beside this file tells how one is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from .diagnose import Diagnosis, diagnose
from .library import Library, library, load
from .reading import read

__all__ = ["Diagnosis", "Library", "diagnose", "explain", "library", "load"]


def explain(text: str, given: Mapping[str, str] | None = None, rules: Library | None = None) -> Diagnosis:
    """What a text says of its cause.

    Args:
        given: values known beside it, by the names of ``seen.json`` and ``rules/_values.json``.
    """
    return diagnose(read(text), rules or library(), given)
