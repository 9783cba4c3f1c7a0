"""When a run began whose lines were brought from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timezone
from typing import cast

from tfenv.report import LATEST

_EARLIEST = 1_420_070_400_000  # the year 2015: before it there was no TensorFlow
_AHEAD = 10 * 60 * 1000  # that the clock there may be ahead of this one's


def began(
    said: object, *, written: float, seconds: float, now: float, tell: Callable[[str], None] = lambda _: None
) -> int:
    """The moment in Unix milliseconds.

    Args:
        said: what the lines say, in Unix milliseconds; None if they do not.
        written: when their file was last written, which is when the run ended; now: in Unix seconds.
        seconds: how long it took.
        tell: gets a sentence on what is not believed.
    """
    number = float(cast(float, said)) if type(said) in (int, float) else math.nan
    if _EARLIEST <= number <= now * 1000 + _AHEAD:
        return round(number)
    if said is not None:
        when = _day(number)
        tell(f"the lines say that they begin {when}, which is not believed: the file's own time is taken")
    return round(min(max((written - seconds) * 1000, 0), LATEST))


def _day(milliseconds: float) -> str:
    if not 0 <= milliseconds <= LATEST:
        return "at no time that there is"
    return f"on {datetime.fromtimestamp(milliseconds / 1000, timezone.utc):%Y-%m-%d at %H:%M} UTC"
