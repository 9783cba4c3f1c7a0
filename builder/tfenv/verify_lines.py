"""The verdict on what the suite printed on another host."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfenv import report, verify
from tfenv.container import Ended
from tfenv.errors import IntegrityError, UsageError
from tfenv.eventlines import event_of, lines_in
from tfenv.files import LINES_MOST, read_text
from tfenv.report import Report

ROOTFS = "rootfs"  # in the place of the engine's version


def of_lines(
    path: Path, declared: Mapping[str, Any], digest: str, suite: verify.Suite | None = None
) -> Report:
    """The verdict on what the suite printed into a file, and other workers into the same with ``.1`` added.

    Args:
        suite: which one it has to be; None for any.

    Raises:
        UsageError: it cannot be read, or is of another suite. IntegrityError: as of ``from_lines``.
    """
    text = read_text(path, LINES_MOST)
    beside = [path.with_name(f"{path.name}.{index}") for index in range(1, verify.WORKERS)]
    others = [read_text(one, LINES_MOST) for one in beside if one.is_file()]
    started = min(max(round(path.stat().st_mtime * 1000), 0), report.LATEST)
    made = from_lines(text, declared, digest, started=started, others=others)
    if suite not in (None, made.suite):
        raise UsageError(
            f"{path} is of the suite {made.suite}, not {suite}", remedy=f"type: --suite {made.suite}"
        )
    return made


def from_lines(
    text: str,
    declared: Mapping[str, Any],
    digest: str,
    *,
    started: int,
    others: Sequence[str] = (),
    packed: bytes | None = None,
) -> Report:
    """The verdict on what the suite printed in the image with that digest, on another host.

    Args:
        started: Unix milliseconds. others: what the other workers printed, for the suite ``workers``.

    Raises:
        IntegrityError: it was another version of the suite, whose verdict this one cannot judge, or another
            image's.
    """
    code = verify.pack() if packed is None else packed
    outcome, said = _outcome(text, code, declared)
    suite: verify.Suite = next((one for one in verify.SUITES if one == said), "smoke")
    plan = verify.plan_of(code, suite)
    spoken = outcome, _ended(outcome), ""
    if others and suite == "workers":
        read = [_outcome(other, code, declared)[0] for other in others]
        spoken = verify.joined(spoken, [(other, _ended(other), "") for other in read], plan.limit)
    verdict, outcome = verify.judge(*spoken, plan.limit, plan)
    facts = outcome.facts
    host = replace(verify.told_host(facts), docker=ROOTFS)
    if verdict == "pass" and not host.gpus:
        verdict, outcome.reason = "unverified", verify.NO_GPU
    if verdict == "pass" and suite == "workers" and not others:
        verdict, outcome.reason = "unverified", "nobody says what worker 1 printed: put it beside, as FILE.1"
    return Report(
        image=digest,
        digest=digest,
        suite=suite,
        suite_hash=verify.suite_hash(code, suite, declared),
        verdict=verdict,
        host=host,
        checks=tuple(outcome.checks),
        started=started,
        seconds=round(sum(check.seconds for check in outcome.checks), 3),
        reason=outcome.reason if verdict == "unverified" else "",
        facts=facts,
    )


def _outcome(text: str, code: bytes, declared: Mapping[str, Any]) -> tuple[verify.Outcome, object]:
    """What was said in ``text``, and by which suite, if that is this very one of this very image."""
    outcome = verify.Outcome()
    start: dict[str, Any] = {}
    for line in lines_in(text):
        verify.take(outcome, line)
        start = start or _start(line)
    if start.get("suite_sha256") != hashlib.sha256(code).hexdigest():
        raise IntegrityError(
            "these lines are of another version of the verification suite",
            remedy="run this version's: `tfenv verify CELL --kit DIR` writes it",
        )
    if start.get("declared_sha256") != verify.declared_hash(declared):
        of = f": it says that it is {start['cell']}" if start.get("cell") else ""
        raise IntegrityError(
            f"these lines are of another image, or of an older lock of this one{of}",
            remedy="name the cell that they are of, or run it again: `tfenv verify CELL --kit DIR`",
        )
    return outcome, start.get("suite")


def _ended(outcome: verify.Outcome) -> Ended:
    """Its exit status is lost: its own verdict has to do, and what it lacks fails all the same."""
    return Ended(verify.STATUS.get(outcome.verdict or "", 1))


def _start(line: str) -> dict[str, Any]:
    event = event_of(line)
    return event if event and event["event"] == "start" else {}
