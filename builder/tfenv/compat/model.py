"""The nouns of a judgement: what is asked, what is found, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

#: refuse: does not run. unknown: nobody can tell. limit: runs, with this limit. lint: the file should be
#: changed, whether or not it fails today. warn: worth knowing, and changes no verdict.
Severity = Literal["refuse", "unknown", "limit", "lint", "warn"]
Outcome = Literal["runs", "limit", "refused", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Query:
    """A combination that somebody asks for. What is empty is not asked, and not judged.

    Args:
        tensorflow: a release (``2.15.1``), or a minor one (``2.15``: its last patch).
        cuda, cudnn: versions of the libraries that TensorFlow will find.
        base: an image, or a base of the matrix.
        cuda_source: ``base``, or ``wheels`` for NVIDIA's wheels.
        python_source: where Python comes from, e.g. ``deadsnakes``.
        gpus: names or compute capabilities; driver: its version.
        env: variables set in the image; extra: requirements beside TensorFlow.
        allow_prerelease: a release candidate was asked for on purpose.
        by_tfenv: the image is built by tfenv, which puts wheels on the loader's path and uses no extra.
    """

    tensorflow: str = ""
    python: str = ""
    cuda: str = ""
    cudnn: str = ""
    base: str = ""
    cuda_source: str = ""
    python_source: str = ""
    platform: str = ""
    gpus: tuple[str, ...] = ()
    driver: str = ""
    env: tuple[tuple[str, str], ...] = ()
    extra: tuple[str, ...] = ()
    allow_prerelease: bool = False
    by_tfenv: bool = False


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a rule found.

    Args:
        code: the rule's name, stable.
        message: what is so, in plain words; remedy: what to do, may be empty.
        source: how it is known.
        line: of the file that was read, from 1; 0 if there is none.
    """

    code: str
    severity: Severity
    message: str
    remedy: str = ""
    source: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the findings come to."""

    outcome: Outcome
    findings: tuple[Finding, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The verdict as data for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        return {"outcome": self.outcome, "gravest": self.gravest, "findings": findings}

    @property
    def gravest(self) -> Severity | None:
        """The severity of the gravest finding; None if there is none."""
        return self.findings[0].severity if self.findings else None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The messages, the gravest first, each once."""
        return tuple(dict.fromkeys(finding.message for finding in self.findings))


_GRAVITY: tuple[Severity, ...] = ("refuse", "unknown", "limit", "lint", "warn")
_OUTCOMES: dict[Severity, Outcome] = {"refuse": "refused", "unknown": "unknown", "limit": "limit"}


def verdict(findings: Iterable[Finding]) -> Verdict:
    """Sort findings by gravity, the gravest first, and sum them up.

    The limits of what does not run at all are left out.
    """
    ordered = list(dict.fromkeys(sorted(findings, key=lambda finding: _GRAVITY.index(finding.severity))))
    worst = ordered[0].severity if ordered else "warn"
    if worst == "refuse":
        ordered = [finding for finding in ordered if finding.severity != "limit"]
    return Verdict(outcome=_OUTCOMES.get(worst, "runs"), findings=tuple(ordered))
