"""A report as CTRF JSON (https://ctrf.io), the form that is read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, cast, get_args

from tfenv import __version__

from .model import EXIT_CODES, LATEST, Check, Finding, Host, Report, Severity, Status, Verdict, summary

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
                    **({} if report.expect_gpus is None else {"expectGpus": report.expect_gpus}),
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
    image = results["environment"]["appName"]
    texts = [image, told["digest"], told["suite"], told["suiteHash"], extra["reason"], *host.values()]
    if not isinstance(gpus, (list, tuple)):
        raise TypeError("the GPUs are no list")
    _require_texts(*texts, *gpus, told.get("standIn", ""))
    if extra["verdict"] not in EXIT_CODES:
        raise ValueError(f"unknown verdict {extra['verdict']!r}")
    checks = tuple(_check_from_ctrf(test) for test in results["tests"])
    if extra["verdict"] == "pass":
        _require_passed(checks, gpus)
    return Report(
        image=image,
        digest=told["digest"],
        suite=told["suite"],
        suite_hash=told["suiteHash"],
        verdict=cast(Verdict, extra["verdict"]),
        host=Host(**host, gpus=tuple(gpus)),
        checks=checks,
        started=int(_number(results["summary"]["start"], LATEST)),
        seconds=_number(extra["seconds"]),
        reason=extra["reason"],
        facts=_object(extra["facts"]),
        stand_in=told.get("standIn", ""),
        expect_gpus=None if (expected := told.get("expectGpus")) is None else int(_number(expected)),
    )


def _require_passed(checks: Sequence[Check], gpus: Sequence[str]) -> None:
    """What every pass has, whatever the suite.

    Raises:
        ValueError: this is none, whoever wrote it.
    """
    states = {check.status for check in checks}
    names = {check.name for check in checks}
    no_gpu = any(check.status == "not-run" and check.reason in ("", "no GPU") for check in checks)
    if "fail" in states or "pass" not in states or len(names) < len(checks) or no_gpu:
        raise ValueError("its checks do not give its verdict")
    if not gpus:
        raise ValueError("nothing passes without a GPU")


def _check_from_ctrf(test: Mapping[str, Any]) -> Check:
    extra = test["extra"]
    _require_texts(test["name"], extra["reason"])
    findings = tuple(Finding(**finding) for finding in extra["findings"])
    for finding in findings:
        _require_texts(finding.message, finding.evidence, finding.remedy)
        if finding.severity not in get_args(Severity):
            raise ValueError(f"unknown severity {finding.severity!r}")
    return Check(
        name=test["name"],
        status=_FROM_CTRF[test["status"]],
        seconds=_number(extra["seconds"]),
        findings=findings,
        facts=_object(extra["facts"]),
        reason=extra["reason"],
    )


def _require_texts(*values: object) -> None:
    if not all(isinstance(value, str) for value in values):
        raise TypeError("a text is none")


def _number(value: object, most: float = 1e9) -> float:
    if type(value) not in (int, float) or not 0 <= cast(float, value) <= most:  # also nan
        raise ValueError(f"no number: {value!r:.40}")
    return float(cast(float, value))


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("facts are no object")
    return value
