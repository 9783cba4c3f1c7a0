"""The verdicts of one image digest on one host."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tfenv.errors import EXIT_FAILED, EXIT_OK, EXIT_UNVERIFIED

from .noise import without_noise

Status = Literal["pass", "fail", "not-run"]
Verdict = Literal["pass", "fail", "unverified"]
Severity = Literal["error", "warning", "info"]

#: The last moment that has a date, in Unix milliseconds.
LATEST = 253_402_300_799_000

EXIT_CODES: dict[str, int] = {"pass": EXIT_OK, "fail": EXIT_FAILED, "unverified": EXIT_UNVERIFIED}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing a check found; what is known to tell nothing is left out of its evidence."""

    severity: Severity
    message: str
    evidence: str = ""
    remedy: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", without_noise(self.evidence))


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
        stand_in: the base image that was replaced by one of the same layout, since it could not be had;
            the verdict is then one on the recipe, not on that base. Empty for the base itself.
        expect_gpus: how many GPUs the image was to see; None for any number.
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
    stand_in: str = ""
    expect_gpus: int | None = None

    @property
    def key(self) -> str:
        """The folder's name: digest, suite and host, 12 hexadecimal digits each."""
        return key(self.digest, self.suite_hash, self.host, self.expect_gpus if self.other_gpus else None)

    @property
    def other_gpus(self) -> bool:
        """Whether more or fewer GPUs were expected than the host gave: that it fails tells of no fault."""
        return self.expect_gpus not in (None, len(self.host.gpus))

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


def key(digest: str, suite_hash: str, host: Host, expected: int | None = None) -> str:
    """The name under which a verdict is kept.

    Args:
        expected: how many GPUs, where that is not how many the host gave.
    """
    of_host = host.key if expected is None else _hash([asdict(host), expected])[:12]
    return f"{digest.removeprefix('sha256:')[:12]}-{suite_hash[:12]}-{of_host}"


def summary(check: Check) -> str:
    """What there is to say of a check, on one line; nothing for one that simply passed."""
    if check.status == "not-run":
        return f"not run: {check.reason or 'no reason given'}"
    wanted = ("error",) if check.status == "fail" else ("warning",)
    return "; ".join(f.message for f in check.findings if f.severity in wanted)


def failures(made: Report) -> str:
    """What is wrong, and what to do, of every check that failed: lines for a terminal; empty if none did."""
    lines: list[str] = []
    for check in made.checks:
        for found in check.findings if check.status == "fail" else ():
            if found.severity != "error":
                continue
            lines.append(f"  {check.name}: {found.message}")
            lines += [f"    {line}" for line in found.evidence.splitlines()[-1:]]
            lines += [f"    -> {found.remedy}"] if found.remedy else []
    return "\n".join(lines)
