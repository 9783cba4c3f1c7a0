"""Which earlier meaning of a name a rollback takes: a pure decision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tfenv.errors import TfenvError, UsageError

from . import state
from .model import Event
from .verdicts import Verdicts


@dataclass(frozen=True)
class Choice:
    """What a name goes back to.

    Args:
        verdict: of that image: ``pass``, ``unverified``, or empty where it was never checked.
        passed_over: digests of later meanings that failed their checks.
    """

    event: Event
    verdict: str
    passed_over: tuple[str, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether every check passed."""
        return self.verdict == "pass"


def choose(events: tuple[Event, ...], name: str, now: str, verdicts: Verdicts, to: str = "") -> Choice:
    """The last verified meaning before the present one, or the one of a day.

    Without one that is verified, the last one of which no check failed.

    Args:
        now: digest that the name means now; empty for none. to: a day or time.

    Raises:
        UsageError: there is nothing to go back to. TfenvError: what the day had has failed its checks.
    """
    own = state.of(events, name)
    if to:
        return _of_day(own, name, state.moment(to), verdicts)
    candidates = state.earlier(own, now)
    judged = [(event, verdicts(event.after) or event.verdict) for event in candidates]
    failed = tuple(event.after for event, verdict in judged if verdict == "fail")
    for wanted in (("pass",), ("unverified", "")):
        for event, verdict in judged:
            if verdict in wanted:
                return Choice(event, verdict, failed)
    if judged:
        raise TfenvError(
            f"every earlier image of {name} has failed its checks",
            remedy=f"see them: tfenv history {name}; build a good one: tfenv up",
        )
    if not own:
        raise UsageError(f"nothing is written down of {name}", remedy="see all names: tfenv history")
    raise UsageError(
        f"{name} has meant nothing else that is written down here",
        remedy=f"see what it has meant: tfenv history {name}",
    )


def _of_day(events: tuple[Event, ...], name: str, when: datetime, verdicts: Verdicts) -> Choice:
    event = state.meant_at(events, when)
    if event is None:
        since = f"since {events[0].at}" if events else "never"
        raise UsageError(
            f"what {name} meant then is not known: it was written down {since}",
            remedy=f"see: tfenv history {name}",
        )
    verdict = verdicts(event.after) or event.verdict
    if verdict == "fail":
        raise TfenvError(
            f"{name} meant {event.after[:19]} then, which has failed its checks",
            remedy=f"choose another day: tfenv history {name}; or tag it yourself: "
            f"docker tag {event.after} {name}",
        )
    return Choice(event, verdict)
