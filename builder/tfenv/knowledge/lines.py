"""A text that was read, as lines that can be searched."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from .placing import Places, places


@dataclass(frozen=True)
class Line:
    """A line that can be compared.

    Args:
        number: in the text, from 1; text: clean, white space run together, without what stands before it.
        low: the same in lower case; times: how often it is there.
    """

    number: int
    text: str
    low: str
    times: int = 1


@dataclass(frozen=True)
class Text:
    """A text that was read: each different line once, in order."""

    lines: tuple[Line, ...]

    @cached_property
    def low(self) -> str:
        """All of it in lower case, a line each."""
        return "\n".join(line.low for line in self.lines)

    @cached_property
    def _places(self) -> Places:
        return places(line.low for line in self.lines)

    @cached_property
    def _starts(self) -> list[int]:
        starts, at = [], 0
        for line in self.lines:
            starts.append(at)
            at += len(line.low) + 1
        return starts

    def holding(self, anchors: tuple[str, ...]) -> Iterator[Line]:
        """The lines with one of these texts, which are in lower case, in order."""
        near = self._near(anchors)
        if near is None:
            yield from self._scanned(anchors)
            return
        first, *others = anchors
        for line in map(self.lines.__getitem__, near):
            low = line.low
            if first in low or (others and any(anchor in low for anchor in others)):
                yield line

    def _near(self, anchors: tuple[str, ...]) -> Collection[int] | None:
        """The places of the lines that can hold one of them; None where it is as quick to read all."""
        found = [self._places.of(anchor) for anchor in anchors]
        told = [near for near in found if near is not None]
        if len(told) < len(found) or 2 * sum(map(len, told)) > len(self.lines):
            return None
        return told[0] if len(told) == 1 else sorted(set().union(*told))

    def _scanned(self, anchors: tuple[str, ...]) -> Iterator[Line]:
        low, starts = self.low, self._starts
        next_at = {anchor: low.find(anchor) for anchor in anchors}
        while ahead := [at for at in next_at.values() if at >= 0]:
            line = self.lines[bisect_right(starts, min(ahead)) - 1]
            yield line
            end = starts[bisect_right(starts, min(ahead)) - 1] + len(line.low)
            for anchor, at in next_at.items():
                if 0 <= at <= end:
                    next_at[anchor] = low.find(anchor, end)
