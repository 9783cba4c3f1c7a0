"""A report: the verdicts of one image digest on one host, and its three written forms.

CTRF JSON (https://ctrf.io) is the one that is read back; JUnit XML and Markdown are for others.
What was not run is *skipped* with its reason in all of them, and a report that holds such a check
never says *passed* of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, cast
from xml.etree import ElementTree

from tfenv import __version__
from tfenv.errors import EXIT_FAILED, EXIT_OK, EXIT_UNVERIFIED, IntegrityError
from tfenv.progress import clean

Status = Literal["pass", "fail", "not-run"]
Verdict = Literal["pass", "fail", "unverified"]

CTRF = "report.ctrf.json"
JUNIT = "report.junit.xml"
MARKDOWN = "report.md"

EXIT_CODES: dict[str, int] = {"pass": EXIT_OK, "fail": EXIT_FAILED, "unverified": EXIT_UNVERIFIED}
_TO_CTRF: dict[Status, str] = {"pass": "passed", "fail": "failed", "not-run": "skipped"}
_FROM_CTRF: dict[str, Status] = {ctrf: status for status, ctrf in _TO_CTRF.items()}
# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing a check found."""

    severity: Literal["error", "warning", "info"]
    message: str
    evidence: str = ""
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check. ``reason`` says why it was not run."""

    name: str
    status: Status
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Host:
    """What matters of the machine, and nothing that tells whose it is.

    Args:
        gpus: names of the GPUs that the container was given; driver: NVIDIA's driver version.
    """

    kernel: str = ""
    machine: str = ""
    cpu: str = ""
    docker: str = ""
    gpus: tuple[str, ...] = ()
    driver: str = ""

    @property
    def key(self) -> str:
        """12 hexadecimal digits that stand for this kind of host."""
        return _hash(asdict(self))[:12]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The verdict on one image.

    Args:
        image: the name it was verified by; digest: of its manifest, with ``sha256:``.
        suite: ``smoke`` or ``full``; suite_hash: hex, of the suite's code and what it was told.
        started: Unix milliseconds; seconds: how long it took.
    """

    image: str
    digest: str
    suite: str
    suite_hash: str
    verdict: Verdict
    host: Host
    checks: tuple[Check, ...]
    started: int
    seconds: float
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The folder's name: digest, suite and host, 12 hexadecimal digits each."""
        return key(self.digest, self.suite_hash, self.host)

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 unverified."""
        return EXIT_CODES[self.verdict]

    @property
    def words(self) -> str:
        """The verdict as people say it."""
        if self.verdict == "pass":
            return "verified"
        if self.verdict == "fail":
            return "failed"
        return f"unverified: {self.reason or 'not every check could be run'}"


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def key(digest: str, suite_hash: str, host: Host) -> str:
    """The name under which a verdict is kept."""
    return f"{digest.removeprefix('sha256:')[:12]}-{suite_hash[:12]}-{host.key}"


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


def summary(check: Check) -> str:
    """What there is to say of a check, on one line; nothing for one that simply passed."""
    if check.status == "not-run":
        return f"not run: {check.reason or 'no reason given'}"
    wanted = ("error",) if check.status == "fail" else ("warning",)
    return "; ".join(f.message for f in check.findings if f.severity in wanted)


def from_ctrf(data: Mapping[str, Any]) -> Report:
    """The report back from ``to_ctrf``.

    Raises:
        KeyError, TypeError, ValueError: it is not one of ours.
    """
    results = data["results"]
    told, extra = results["environment"]["extra"], results["extra"]
    host = {f.name: told["host"][f.name] for f in fields(Host)}
    if extra["verdict"] not in EXIT_CODES:
        raise ValueError(f"unknown verdict {extra['verdict']!r}")
    return Report(
        image=results["environment"]["appName"],
        digest=told["digest"],
        suite=told["suite"],
        suite_hash=told["suiteHash"],
        verdict=cast(Verdict, extra["verdict"]),
        host=Host(**{**host, "gpus": tuple(host["gpus"])}),
        checks=tuple(_check_from_ctrf(test) for test in results["tests"]),
        started=int(results["summary"]["start"]),
        seconds=float(extra["seconds"]),
        reason=extra["reason"],
        facts=extra["facts"],
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


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))


def to_junit(report: Report) -> str:
    """The report as JUnit XML."""
    count = {status: sum(1 for c in report.checks if c.status == status) for status in _TO_CTRF}
    suite = ElementTree.Element(
        "testsuite",
        name=f"tfenv {report.suite}: {_xml(report.image)}",
        tests=str(len(report.checks)),
        failures=str(count["fail"]),
        errors="0",
        skipped=str(count["not-run"]),
        time=f"{report.seconds:.3f}",
        timestamp=_time(report).strftime("%Y-%m-%dT%H:%M:%S"),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _about(report):
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    for check in report.checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname="tfenv", name=_xml(check.name), time=f"{check.seconds:.3f}"
        )
        if check.status == "not-run":
            ElementTree.SubElement(case, "skipped", message=_xml(summary(check)))
        elif check.status == "fail":
            failure = ElementTree.SubElement(case, "failure", message=_xml(summary(check)))
            failure.text = _xml(_details(check))
        elif details := _details(check):
            ElementTree.SubElement(case, "system-out").text = _xml(details)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _time(report: Report) -> datetime:
    return datetime.fromtimestamp(report.started / 1000, timezone.utc)


def _about(report: Report) -> list[tuple[str, str]]:
    host = report.host
    return [
        ("verdict", report.words),
        ("digest", report.digest),
        ("suite", f"{report.suite} {report.suite_hash[:12]}"),
        ("kernel", f"{host.kernel} {host.machine}".strip()),
        ("cpu", host.cpu),
        ("docker", host.docker),
        ("gpu", ", ".join(host.gpus) or "none"),
        ("driver", host.driver or "none"),
    ]


def _details(check: Check) -> str:
    lines = []
    for finding in check.findings:
        lines.append(f"{finding.severity}: {finding.message}")
        lines += [f"  | {line}" for line in finding.evidence.splitlines()]
        if finding.remedy:
            lines.append(f"  remedy: {finding.remedy}")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(clean(text).split()).replace("|", "\\|").replace("<", "&lt;")


def to_markdown(report: Report) -> str:
    """The report for people."""
    lines = [f"# {_cell(report.image)}: {_cell(report.words)}", ""]
    lines += [f"- {name}: {_cell(value)}" for name, value in _about(report) if value]
    lines += [f"- date: {_time(report):%Y-%m-%d}", ""]
    lines += ["| check | result | seconds | |", "|---|---|---:|---|"]
    for check in report.checks:
        result = "**fail**" if check.status == "fail" else check.status.replace("-", " ")
        said = check.reason if check.status == "not-run" else summary(check)
        lines.append(f"| {_cell(check.name)} | {result} | {check.seconds:.1f} | {_cell(said)} |")
    for check in report.checks:
        told = [f for f in check.findings if f.severity != "info"]
        if told:
            lines += ["", f"## {_cell(check.name)}"]
        for finding in told:
            lines += ["", f"**{finding.severity}**: {_cell(finding.message)}"]
            if finding.evidence:
                lines += ["", *(f"    {line}" for line in clean(finding.evidence).splitlines())]
            if finding.remedy:
                lines += ["", f"Remedy: {_cell(finding.remedy)}"]
    return "\n".join(lines) + "\n"


WRITERS: dict[str, Callable[[Report], str]] = {
    MARKDOWN: to_markdown,
    JUNIT: to_junit,
    # Last: it is what `read` looks for.
    CTRF: lambda report: json.dumps(to_ctrf(report), indent=2, sort_keys=True) + "\n",
}


def write(report: Report, parent: Path) -> Path:
    """Write all forms to ``parent/<key>/`` and return that folder.

    Each file appears whole or not at all. A former report of the same key is replaced.
    """
    folder = parent / report.key
    folder.mkdir(parents=True, exist_ok=True)
    for name, form in WRITERS.items():
        _write(folder / name, form(report))
    return folder


def _write(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(folder: Path) -> Report:
    """The report in ``folder``.

    Raises:
        IntegrityError: there is none, or it is not one of ours.
    """
    path = folder / CTRF
    try:
        return from_ctrf(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"{path} is not a usable report: {error!r}", remedy="delete it and run `tfenv verify`"
        ) from None


def find(parent: Path, digest: str, suite_hash: str, host: Host) -> Report | None:
    """A former verdict of exactly this image, suite and host, None if there is no usable one."""
    try:
        report = read(parent / key(digest, suite_hash, host))
    except IntegrityError:
        return None
    same = (report.digest, report.suite_hash, report.host) == (digest, suite_hash, host)
    return report if same else None
