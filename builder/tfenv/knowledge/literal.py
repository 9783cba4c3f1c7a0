"""Texts of patterns, found without regular expressions. Two patterns in three have no holes at all."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Literal:
    """Texts in lower case, one after the other with gaps between them.

    Args:
        line_start, line_end: the first one begins the line, the last one ends it but for white space.
        word_start: no letter or digit stands before the first; number_end: no digit after the last.
    """

    texts: tuple[str, ...]
    line_start: bool = False
    word_start: bool = False
    line_end: bool = False
    number_end: bool = False

    def fits(self, low: str) -> bool:
        """Whether a line of ASCII, in lower case, holds them: each is sought once, none is tried again."""
        at, last = 0, len(self.texts) - 1
        for index, text in enumerate(self.texts):
            if index == last and self.line_end:
                at = max(at, len(low.rstrip()) - len(text))
            at = self._find(low, text, at, first=index == 0, last=index == last)
            if at < 0:
                return False
            at += len(text)
        return True

    def _find(self, low: str, text: str, at: int, *, first: bool, last: bool) -> int:
        """Where a text stands, from a place on; -1 if nowhere."""
        while (at := low.find(text, at)) >= 0:
            end = at + len(text)
            if first and self.line_start and at:
                return -1
            starts = not (first and self.word_start and at and low[at - 1].isalnum())
            if starts and not (last and self.number_end and low[end : end + 1].isdigit()):
                return at
            at += 1
        return -1


def from_head(part: re.Pattern[str], line: str, at: int, low: str, head: str) -> re.Match[str] | None:
    """The first match, from a place on, of an expression that begins with a text: tried where that stands.

    Args:
        low: the line, of ASCII, in lower case; head: the text in lower case.
    """
    while (at := low.find(head, at)) >= 0:
        if found := part.match(line, at):
            return found
        at += 1
    return None
