"""The lines that the suite prints, read into what it said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tfenv.report import Check, Finding, Status

_STRAYS_KEPT = 1000  # lines that are no events


@dataclass
class Outcome:
    """What the suite said, as it came."""

    checks: list[Check] = field(default_factory=list)
    started: bool = False
    planned: tuple[str, ...] = ()
    verdict: str | None = None
    reason: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)

    @property
    def silent(self) -> bool:
        """Not one event came: the suite did not even start."""
        return not (self.started or self.checks or self.verdict)


def take(outcome: Outcome, line: str) -> Check | None:
    """Add one line of the suite's stdout; the check in it, if it is one.

    A line that is no event is kept as a stray: other programs may print on stdout too.
    """
    try:
        event = json.loads(line)
        kind = event["event"]
        if kind == "start":
            outcome.started = True
            outcome.planned = tuple(str(check["name"]) for check in event.get("checks") or ())
        elif kind == "check":
            outcome.checks.append(_check(event))
            return outcome.checks[-1]
        elif kind == "end":
            outcome.verdict = str(event["verdict"])
            outcome.reason = str(event.get("reason") or "")
            outcome.facts = dict(event.get("facts") or {})
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        if line.strip() and len(outcome.strays) < _STRAYS_KEPT:
            outcome.strays.append(line[:500])
    return None


def _seconds(said: object) -> float:
    seconds = float(cast(float, said or 0.0))
    if not 0 <= seconds < 1e9:  # also nan
        raise ValueError(f"no duration: {said!r}")
    return seconds


def _check(event: Mapping[str, Any]) -> Check:
    status = event["status"]
    findings = tuple(
        Finding(
            severity=item.get("severity", "error"),
            message=str(item.get("message", "")),
            evidence=str(item.get("evidence") or ""),
            remedy=str(item.get("remedy") or ""),
        )
        for item in event.get("findings") or ()
    )
    if status not in ("pass", "fail", "not-run"):
        unknown = Finding(severity="error", message=f"the suite gave an unknown status {status!r}")
        status, findings = "fail", (*findings, unknown)
    return Check(
        name=str(event["name"]),
        status=cast(Status, status),
        seconds=_seconds(event.get("seconds")),
        findings=findings,
        facts=dict(event.get("facts") or {}),
        reason=str(event.get("reason") or ""),
    )
