"""A report as CTRF JSON (https://ctrf.io), the form that is read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, cast

from tfenv import __version__

from .model import EXIT_CODES, Check, Finding, Host, Report, Status, Verdict, summary

_TO_CTRF: dict[Status, str] = {"pass": "passed", "fail": "failed", "not-run": "skipped"}
_FROM_CTRF: dict[str, Status] = {ctrf: status for status, ctrf in _TO_CTRF.items()}


def to_ctrf(report: Report) -> dict[str, Any]:
    """The report in the Common Test Report Format."""
    count = {status: sum(1 for c in report.checks if c.status == status) for status in _TO_CTRF}
    return {
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "results": {
            "tool": {"name": "tfenv", "version": __version__},
            "summary": {
                "tests": len(report.checks),
                "passed": count["pass"],
                "failed": count["fail"],
                "pending": 0,
                "skipped": count["not-run"],
                "other": 0,
                "start": report.started,
                "stop": report.started + round(report.seconds * 1000),
            },
            "tests": [_ctrf_test(check) for check in report.checks],
            "environment": {
                "appName": report.image,
                "osPlatform": "linux",
                "osRelease": report.host.kernel,
                "extra": {
                    "digest": report.digest,
                    **({"standIn": report.stand_in} if report.stand_in else {}),
                    "suite": report.suite,
                    "suiteHash": report.suite_hash,
                    "host": asdict(report.host),
                },
            },
            "extra": {
                "verdict": report.verdict,
                "reason": report.reason,
                "seconds": report.seconds,
                "facts": dict(report.facts),
            },
        },
    }


def _ctrf_test(check: Check) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": check.name,
        "status": _TO_CTRF[check.status],
        "rawStatus": check.status,
        "duration": round(check.seconds * 1000),
        "suite": "tfenv",
        "extra": {
            "seconds": check.seconds,
            "findings": [asdict(finding) for finding in check.findings],
            "facts": dict(check.facts),
            "reason": check.reason,
        },
    }
    if message := summary(check):
        test["message"] = message
    if trace := "\n".join(f.evidence for f in check.findings if f.evidence):
        test["trace"] = trace
    return test


def from_ctrf(data: Mapping[str, Any]) -> Report:
    """The report back from ``to_ctrf``.

    Raises:
        KeyError, TypeError, ValueError: it is not one of ours.
    """
    results = data["results"]
    told, extra = results["environment"]["extra"], results["extra"]
    host = {f.name: told["host"][f.name] for f in fields(Host)}
    gpus = host.pop("gpus")
    texts = [told["digest"], told["suite"], told["suiteHash"], extra["reason"], *gpus, *host.values()]
    if isinstance(gpus, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError("a text is none")
    if extra["verdict"] not in EXIT_CODES:
        raise ValueError(f"unknown verdict {extra['verdict']!r}")
    checks = tuple(_check_from_ctrf(test) for test in results["tests"])
    states = {check.status for check in checks}
    if extra["verdict"] == "pass" and ("fail" in states or "pass" not in states):
        raise ValueError("its checks do not give its verdict")
    return Report(
        image=results["environment"]["appName"],
        digest=told["digest"],
        suite=told["suite"],
        suite_hash=told["suiteHash"],
        verdict=cast(Verdict, extra["verdict"]),
        host=Host(**host, gpus=tuple(gpus)),
        checks=checks,
        started=int(results["summary"]["start"]),
        seconds=float(extra["seconds"]),
        reason=extra["reason"],
        facts=extra["facts"],
        stand_in=str(told.get("standIn", "")),
    )


def _check_from_ctrf(test: Mapping[str, Any]) -> Check:
    return Check(
        name=test["name"],
        status=_FROM_CTRF[test["status"]],
        seconds=float(test["extra"]["seconds"]),
        findings=tuple(Finding(**finding) for finding in test["extra"]["findings"]),
        facts=test["extra"]["facts"],
        reason=test["extra"]["reason"],
    )
