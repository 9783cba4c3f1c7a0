"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .model import Finding
from .subject import Subject


@dataclass(frozen=True)
class Rule:
    """A rule: ``check`` gives findings of this ``code`` alone, none where all is well or nothing is known."""

    code: str
    check: Callable[[Subject], Iterator[Finding]]
