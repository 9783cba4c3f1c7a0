"""The history for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import state
from .model import Event
from .verdicts import Verdicts

_WORDS = {"pass": "verified", "fail": "FAILED", "unverified": "unverified", "": "not checked"}


def lines(
    events: tuple[Event, ...], name: str, now: Mapping[str, str] | None, verdicts: Verdicts
) -> list[str]:
    """One name: what it means now, then its moves, the newest first.

    Args:
        now: by name the digest that it means in the engine; None where the engine does not answer.
    """
    own = state.of(events, name)
    holding = state.held(own).get(name)
    head = name + (f"  held back since {holding.at[:10]}" if holding else "")
    if now is not None and own and now.get(name, "") != own[-1].after:
        head += f"  (in the engine it means {now.get(name, '')[:19] or 'nothing'}: not moved by tfenv)"
    return [head, *(f"  {_line(event, verdicts)}" for event in reversed(own))]


def _line(event: Event, verdicts: Verdicts) -> str:
    verdict = _WORDS.get(verdicts(event.after) or event.verdict, "not checked")
    digest = event.after[:19] or "nothing"
    what = "" if event.kind == "moved" else f"{event.kind}, "
    time = event.at.replace("T", " ").removesuffix("Z")
    return f"{time}  {digest}  {verdict:<11}  {event.cell or 'unknown cell'}  ({what}{event.why})"


def plain(event: Event, now: Mapping[str, str] | None, held: bool, verdicts: Verdicts) -> dict[str, Any]:
    """One move as data; ``verdict_now`` is what reports say today, ``current`` is null if nobody knows."""
    return {
        "at": event.at,
        "name": event.name,
        "kind": event.kind,
        "before": event.before,
        "digest": event.after,
        "cell": event.cell,
        "lock": event.lock,
        "why": event.why,
        "verdict": event.verdict,
        "verdict_now": verdicts(event.after),
        "current": None if now is None else now.get(event.name, "") == event.after,
        "held": held,
    }
