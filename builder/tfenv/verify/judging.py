"""The verdict on what the suite said and how it ended. Fails closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from tfenv.container import Ended
from tfenv.report import Check, Finding, Verdict

from .plan import Plan
from .protocol import Outcome

NO_GPU = "no GPU"  # the verifier's reason for what needs one
AGAIN = "run it again into a file of its own, as `tfenv verify CELL --kit DIR` says, and look at its stderr"
_BY_HAND = "run the image by hand: `docker run --rm -it IMAGE python -c 'import tensorflow'`"
STATUS = {"pass": 0, "fail": 1, "unverified": 3}  # the exit status of the suite, by its verdict


def judge(
    outcome: Outcome, ended: Ended | None, stderr: str, limit: int, plan: Plan
) -> tuple[Verdict, Outcome]:
    """The verdict, and the outcome with a failed check added where the suite broke off.

    Args:
        ended: None where nobody knows: what it said is in a file.

    A pass needs all of: the suite's own word for it, exit status 0, exactly the checks of ``plan``,
    one result of each, one that passed, none that failed, and of those not run only what the plan accepts.
    """
    states = [check.status for check in outcome.checks]
    remedy = _BY_HAND if ended else AGAIN
    if outcome.verdict not in ("pass", "fail", "unverified"):
        return "fail", _broke_off(outcome, why_ended(ended, limit), stderr, remedy)
    if outcome.verdict == "fail" or "fail" in states:
        if "fail" not in states:
            return "fail", _broke_off(outcome, "the suite failed without a failed check", stderr, remedy)
        return "fail", outcome
    if confused := _confused(outcome):
        return "fail", _broke_off(outcome, confused, stderr, remedy)
    if lost := set(outcome.planned) - {check.name for check in outcome.checks}:
        return "fail", _broke_off(outcome, f"no result came of {', '.join(sorted(lost))}", stderr, remedy)
    if ended and ended.status != STATUS[outcome.verdict]:
        why = f"the suite said {outcome.verdict} but ended with exit status {ended.status}"
        return "fail", _broke_off(outcome, why, stderr, remedy)
    if doubts := [*_not_run(outcome, plan), *_not_planned(outcome, plan)]:
        outcome.reason = outcome.reason or "; ".join(doubts)
        return "unverified", outcome
    if "pass" not in states:
        outcome.reason = outcome.reason or "no check was run"
        return "unverified", outcome
    if outcome.verdict == "unverified":
        outcome.reason = outcome.reason or "the suite does not say why"
    return cast(Verdict, outcome.verdict), outcome


def _confused(outcome: Outcome) -> str:
    """Why this is not what one run of the suite says, if it is not: parts of two prove nothing."""
    if outcome.starts > 1 or outcome.ends > 1:
        return "the suite started, or ended, more than once: this is not what one run of it says"
    if outcome.late:
        return "the suite went on after its end"
    names = [check.name for check in outcome.checks]
    twice = sorted({name for name in names if names.count(name) > 1})
    return f"more than one result came of {', '.join(twice)}" if twice else ""


def _not_run(outcome: Outcome, plan: Plan) -> Iterator[str]:
    """Why what was not run leaves the image unverified; no GPU is said once for all checks."""
    left = [
        check
        for check in outcome.checks
        if check.status == "not-run" and check.reason not in plan.accepted.get(check.name, ())
    ]
    if any(check.reason == NO_GPU for check in left):
        yield NO_GPU
    for check in left:
        if check.reason != NO_GPU:
            yield f"{check.name} was not run: {check.reason or 'no reason is given'}"


def _not_planned(outcome: Outcome, plan: Plan) -> Iterator[str]:
    """What the suite in the container left out of its plan, or out of its results."""
    ran = {check.name for check in outcome.checks}
    if left := [name for name in plan.names if name not in outcome.planned or name not in ran]:
        yield f"the suite did not plan {', '.join(left)}"
    if strange := sorted((ran | set(outcome.planned)) - set(plan.names)):
        yield f"the suite has unknown checks: {', '.join(strange)}"


def why_ended(ended: Ended | None, limit: int) -> str:
    """How a suite ended that gave no verdict within ``limit`` seconds."""
    if ended is None:
        return "the file breaks off before the suite's end: it was cut off, or the suite was killed"
    if ended.out_of_memory:
        return "the kernel ended the suite: out of memory"
    if ended.status in (124, 137):
        return f"the suite did not end within {limit} s, or was killed (exit status {ended.status})"
    return f"the suite ended without a verdict (exit status {ended.status})"


def _broke_off(outcome: Outcome, why: str, stderr: str, remedy: str) -> Outcome:
    evidence = "\n".join([*outcome.strays[-10:], *stderr.splitlines()[-20:]])
    finding = Finding(
        severity="error",
        message=why,
        evidence=evidence,
        remedy=remedy,
    )
    broken = Check(name="suite", status="fail", findings=(finding,))
    return replace(outcome, checks=[*outcome.checks, broken])
