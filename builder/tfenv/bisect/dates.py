"""The stage of dates: between which two moments does it break?"""

from __future__ import annotations

from collections.abc import Sequence

from tfenv.bisect.inquiry import Inquiry, Span
from tfenv.bisect.journal import Refused
from tfenv.bisect.model import Endpoint, PinSet, Word
from tfenv.bisect.search import transition
from tfenv.errors import NotReadyError


def by_dates(inquiry: Inquiry, good: Endpoint, bad: Endpoint, span: Span, lines: Sequence[str]) -> Span:
    """Narrow a span down along the moments in it; the span itself where there are none to go by.

    A moment whose set is known already costs no test, and one at which nothing resolves is skipped.

    Args:
        good, bad: the ends; both have to ask for the same.
        lines: what is asked for beside that, to keep out what was found before.
    """
    asked, other = ((end.requirements, end.from_source, end.without) for end in (good, bad))
    if not (bad.requirements and asked == other and span.after and span.since and span.after != span.since):
        return span
    try:
        moments = inquiry.listed(
            f"moments {span.good.digest} {span.bad.digest}",
            lambda: inquiry.world.moments(span.good, span.bad, span.after, span.since),
        )
    except (LookupError, NotReadyError) as error:
        inquiry.say(f"no search along dates: {error}")
        return span
    whens = (span.after, *moments, span.since)
    inquiry.stage(len(moments) + 1, f"{len(moments)} moments from {span.after[:10]} to {span.since[:10]}")

    def at(position: int) -> PinSet | Refused:
        if position == 0:
            return span.good
        if position == len(whens) - 1:
            return span.bad
        return inquiry.resolved(bad, lines, whens[position])

    def word(position: int) -> Word:
        pins = at(position)
        if isinstance(pins, Refused):
            return "skip"
        return inquiry.word(pins, whens[position].replace("T", " ").rstrip("Z"))

    found = inquiry.drive(transition(len(whens)), word)
    low, high = at(found.good), at(found.bad)
    assert isinstance(low, PinSet) and isinstance(high, PinSet)
    inquiry.say(f"good until {whens[found.good]}, bad from {whens[found.bad]}")
    return Span(good=low, bad=high, after=whens[found.good], since=whens[found.bad])
