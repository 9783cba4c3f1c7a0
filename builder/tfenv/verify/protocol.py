"""The lines that the suite prints, read into what it said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from tfenv.eventlines import event_of
from tfenv.report import Check, Finding, Severity, Status

_STRAYS_KEPT = 1000  # lines that are no events
_MOST = 64 << 20  # characters of all events together; the suite says some hundred thousand


@dataclass
class Outcome:
    """What the suite said, as it came.

    Args:
        starts, ends: how often it said that it starts, and that it ends: once each, or it is not one suite's.
        late: what it still said after its end.
    """

    checks: list[Check] = field(default_factory=list)
    starts: int = 0
    ends: int = 0
    late: int = 0
    size: int = 0
    planned: tuple[str, ...] = ()
    verdict: str | None = None
    reason: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)

    @property
    def silent(self) -> bool:
        """Not one event came: the suite did not even start."""
        return not (self.starts or self.checks or self.verdict)


def take(outcome: Outcome, line: str) -> Check | None:
    """Add one line of the suite's stdout; the check in it, if it is one.

    A line that is no event is kept as a stray: other programs may print on stdout too.
    """
    event = event_of(line) if outcome.size + len(line) <= _MOST else None
    if event is not None:
        try:
            check = _add(outcome, event)
            outcome.size += len(line)
            return check
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            pass
    if len(outcome.strays) < _STRAYS_KEPT and line.strip():
        outcome.strays.append(line[:500])
    return None


def _add(outcome: Outcome, event: Mapping[str, Any]) -> Check | None:
    kind = event["event"]
    outcome.late += outcome.ends and kind in ("start", "check", "end")
    if kind == "start":
        outcome.starts += 1
        outcome.planned = tuple(str(check["name"]) for check in event.get("checks") or ())
    elif kind == "check":
        outcome.checks.append(_check(event))
        return outcome.checks[-1]
    elif kind == "end":
        outcome.ends += 1
        outcome.verdict = str(event["verdict"])
        outcome.reason = str(event.get("reason") or "")
        outcome.facts = _facts(event)
    return None


def _seconds(said: object) -> float:
    seconds = float(cast(float, said or 0.0))
    if not 0 <= seconds < 1e9:  # also nan
        raise ValueError(f"no duration: {said!r}")
    return seconds


def _facts(event: Mapping[str, Any]) -> dict[str, Any]:
    facts = event.get("facts") or {}
    if not isinstance(facts, dict):
        raise TypeError(f"no facts: {facts!r}")
    return facts


def _severity(said: object) -> Severity:
    """One that nobody knows counts as an error."""
    return cast(Severity, said if said in get_args(Severity) else "error")


def _check(event: Mapping[str, Any]) -> Check:
    status = event["status"]
    findings = tuple(
        Finding(
            severity=_severity(item.get("severity")),
            message=str(item.get("message", "")),
            evidence=str(item.get("evidence") or ""),
            remedy=str(item.get("remedy") or ""),
        )
        for item in event.get("findings") or ()
    )
    if status not in ("pass", "fail", "not-run"):
        unknown = Finding(severity="error", message=f"the suite gave an unknown status {status!r}")
        status, findings = "fail", (*findings, unknown)
    if any(finding.severity == "error" for finding in findings):
        status = "fail"  # whatever it calls itself
    return Check(
        name=str(event["name"]),
        status=cast(Status, status),
        seconds=_seconds(event.get("seconds")),
        findings=findings,
        facts=_facts(event),
        reason=str(event.get("reason") or ""),
    )
