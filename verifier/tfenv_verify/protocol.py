"""What the suite says: findings, one outcome per check, one verdict. One JSON object a line."""

from __future__ import annotations

import json
import sys
from typing import Any, Iterable, Mapping, Sequence

PROTOCOL = 1

PASS, FAIL, NOT_RUN, UNVERIFIED = "pass", "fail", "not-run", "unverified"

EXIT_PASS, EXIT_FAIL, EXIT_USAGE, EXIT_UNVERIFIED = 0, 1, 2, 3
EXIT_OF_VERDICT = {PASS: EXIT_PASS, FAIL: EXIT_FAIL, UNVERIFIED: EXIT_UNVERIFIED}

NO_GPU, ONE_GPU = "no GPU", "one GPU"


class UsageError(Exception):
    """The request itself is wrong: an unknown check, an unreadable declaration. Exit code 2."""


class NotRunError(Exception):
    """Raised by a check that cannot be made here; the message is the reason."""


class Report:
    """What one check collects: findings, and facts worth keeping whatever the outcome."""

    def __init__(self) -> None:
        self.findings: list[dict[str, str]] = []
        self.facts: dict[str, Any] = {}

    def error(self, message: str, evidence: str = "", remedy: str = "") -> None:
        """Something is wrong: the check fails. The remedy says what to do next."""
        self.findings.append(finding("error", message, evidence, remedy))

    def warning(self, message: str, evidence: str = "", remedy: str = "") -> None:
        """Something will hurt later; the check still passes."""
        self.findings.append(finding("warning", message, evidence, remedy))

    def info(self, message: str, evidence: str = "", remedy: str = "") -> None:
        """Something worth knowing."""
        self.findings.append(finding("info", message, evidence, remedy))

    @property
    def status(self) -> str:
        """``fail`` if there is an error among the findings, else ``pass``."""
        return FAIL if any(f["severity"] == "error" for f in self.findings) else PASS


def finding(severity: str, message: str, evidence: str = "", remedy: str = "") -> dict[str, str]:
    """One finding as it is written out."""
    return {
        "severity": severity,
        "message": message,
        "evidence": evidence,
        "remedy": remedy,
    }


def outcome(
    name: str,
    status: str,
    *,
    seconds: float = 0.0,
    findings: Iterable[dict[str, str]] = (),
    facts: dict[str, Any] | None = None,
    reason: str = "",
) -> dict[str, Any]:
    """One ``check`` event. ``seconds`` is wall-clock time; ``reason`` is for ``not-run``."""
    event: dict[str, Any] = {
        "event": "check",
        "name": name,
        "status": status,
        "seconds": round(seconds, 3),
        "findings": list(findings),
        "facts": facts or {},
    }
    if status == NOT_RUN:
        event["reason"] = reason
    return event


def verdict(outcomes: Iterable[dict[str, Any]], accepted: Mapping[str, Sequence[str]]) -> str:
    """One failed check fails the whole; one that was not run leaves it unverified.

    ``accepted`` has by check the reasons for which it need not be run. Nothing run at all is
    unverified too: a pass is always earned.
    """
    seen = list(outcomes)
    if any(o["status"] == FAIL for o in seen):
        return FAIL
    if any(o["status"] != PASS and o.get("reason") not in accepted.get(o["name"], ()) for o in seen):
        return UNVERIFIED
    return PASS if any(o["status"] == PASS for o in seen) else UNVERIFIED


def emit(event: dict[str, Any]) -> None:
    """Write one event to stdout and flush it: the reader must see it even if we are killed."""
    sys.stdout.write(json.dumps(event, sort_keys=True) + "\n")
    sys.stdout.flush()


def say(line: str) -> None:
    """A line of progress on stderr: it tells where a check was when it was killed."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def shorten(items: Iterable[str], limit: int = 10) -> str:
    """The first ``limit`` items, one a line, and how many were left out."""
    every = list(items)
    lines = every[:limit]
    if len(every) > limit:
        lines.append("... and {} more".format(len(every) - limit))
    return "\n".join(lines)
