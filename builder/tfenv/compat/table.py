"""All rules, and the judgement that they come to."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from tfenv import facts
from tfenv.factfiles import read

from .bases import BASE_RULES
from .driver import DRIVER_RULES
from .extras import EXTRA_RULES
from .gpu import GPU_RULES
from .libraries import LIBRARY_RULES
from .model import Finding, Query, Verdict, verdict
from .nvidia_tags import TAG_RULES
from .packages import PACKAGE_RULES
from .releases import RELEASE_RULES
from .rules import Rule
from .subject import Known, subjects

RULES: tuple[Rule, ...] = (
    *RELEASE_RULES,
    *EXTRA_RULES,
    *TAG_RULES,
    *BASE_RULES,
    *LIBRARY_RULES,
    *GPU_RULES,
    *DRIVER_RULES,
    *PACKAGE_RULES,
)


def known(today: date | None = None) -> Known:
    """What the committed facts hold, and the day."""
    return Known(
        compiled=facts.compiled,
        releases=facts.releases(),
        today=today or date.today(),
        requires=_requires,
    )


def _requires(release: str) -> tuple[str, ...]:
    """Requires-Dist of a release's wheel, as `tfenv facts audit` read it; empty if it was not read."""
    found = read("wheels/tensorflow")["releases"].get(release, {})
    return tuple(found.get("read", {}).get("requires", ()))


def findings(query: Query, of: Known) -> tuple[Finding, ...]:
    """What the rules find, in the order of the rules."""
    return tuple(
        dict.fromkeys(
            finding for subject in subjects(query, of) for rule in RULES for finding in rule.check(subject)
        )
    )


def judge(query: Query, of: Known, also: Iterable[Finding] = ()) -> Verdict:
    """Whether a combination runs.

    Args:
        also: findings from elsewhere, e.g. of the file that the question was read from.
    """
    return verdict((*also, *findings(query, of)))
