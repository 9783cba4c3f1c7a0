"""The verdict on what the suite printed on another host."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tfenv import verify
from tfenv.began import began
from tfenv.errors import UsageError
from tfenv.eventlines import event_of, lines_in
from tfenv.files import LINES_MOST, read_text
from tfenv.report import Report

ROOTFS = "rootfs"  # in the place of the engine's version


@dataclass(frozen=True)
class Printed:
    """What was printed, the name of the file, and when it was last written (Unix seconds)."""

    text: str
    name: str = "the file"
    written: float = 0.0


def of_lines(
    path: Path,
    declared: Mapping[str, Any],
    digest: str,
    suite: verify.Suite | None = None,
    *,
    tell: Callable[[str], None] = lambda _said: None,
) -> Report:
    """The verdict on what the suite printed into a file, and other workers into the same with ``.1`` added.

    Args:
        suite: which one it has to be; None for any. tell: gets what is to be said beside the verdict.

    Raises:
        UsageError: it cannot be read, is of another suite, or as of ``from_lines``.
    """
    beside = [path.with_name(f"{path.name}.{index}") for index in range(1, verify.WORKERS)]
    others = [_printed(one) for one in beside if one.is_file()]
    made = from_lines(_printed(path), declared, digest, others=others, tell=tell)
    if suite not in (None, made.suite):
        raise UsageError(
            f"{path} is of the suite {made.suite}, not {suite}", remedy=f"type: --suite {made.suite}"
        )
    return made


def _printed(path: Path) -> Printed:
    return Printed(read_text(path, LINES_MOST), str(path), path.stat().st_mtime)


def from_lines(
    printed: Printed,
    declared: Mapping[str, Any],
    digest: str,
    *,
    others: Sequence[Printed] = (),
    packed: bytes | None = None,
    tell: Callable[[str], None] = lambda _said: None,
    now: Callable[[], float] = time.time,
) -> Report:
    """The verdict on what the suite printed in the image with that digest, on another host.

    Args:
        others: what the other workers printed, for the suite ``workers``.
        tell: gets what is to be said beside the verdict. now: Unix seconds.

    Raises:
        UsageError: there is nothing to judge: it holds no line of the suite, more than one run, or lines of
            another version of it, whose verdict this one cannot judge, or another image's.
    """
    code = verify.pack() if packed is None else packed
    outcome, start = _outcome(printed, code, declared)
    suite: verify.Suite = next((one for one in verify.SUITES if one == start.get("suite")), "smoke")
    plan = verify.plan_of(code, suite)
    spoken: verify.Said = outcome, None, ""
    if others and suite == "workers":
        read = [_outcome(other, code, declared)[0] for other in others]
        spoken = verify.joined(spoken, [(other, None, "") for other in read], plan.limit)
    verdict, outcome = verify.judge(*spoken, plan.limit, plan)
    facts = outcome.facts
    host = replace(verify.told_host(facts), docker=ROOTFS)
    if verdict == "pass" and not host.gpus:
        verdict, outcome.reason = "unverified", verify.NO_GPU
    if verdict == "pass" and suite == "workers" and not others:
        other = f"{printed.name}.1"
        verdict, outcome.reason = (
            "unverified",
            f"nobody says what worker 1 printed: put it beside, as {other}",
        )
    seconds = round(sum(check.seconds for check in outcome.checks), 3)
    said = start.get("started")
    return Report(
        image=digest,
        digest=digest,
        suite=suite,
        suite_hash=verify.suite_hash(code, suite, declared),
        verdict=verdict,
        host=host,
        checks=tuple(outcome.checks),
        started=began(said, written=printed.written, seconds=seconds, now=now(), tell=tell),
        seconds=seconds,
        reason=outcome.reason if verdict == "unverified" else "",
        facts=facts,
        expect_gpus=_count(start.get("expect_gpus")),
    )


def _outcome(
    printed: Printed, code: bytes, declared: Mapping[str, Any]
) -> tuple[verify.Outcome, dict[str, Any]]:
    """What was said, and its start, if that is of this very suite and of this very image."""
    outcome = verify.Outcome()
    start: dict[str, Any] = {}
    for line in lines_in(printed.text):
        verify.take(outcome, line)
        start = start or _start(line)
    _require_start(printed.name, start, outcome)
    if max(outcome.starts, outcome.ends) > 1:
        raise UsageError(f"{printed.name} holds more than one run of the suite", remedy=verify.AGAIN)
    if start.get("suite_sha256") != hashlib.sha256(code).hexdigest():
        raise UsageError(
            f"{printed.name}: these lines are of another version of the verification suite",
            remedy="run this version's: `tfenv verify CELL --kit DIR` writes it",
        )
    if start.get("declared_sha256") != verify.declared_hash(declared):
        of = f": it says that it is {start['cell']}" if start.get("cell") else ""
        raise UsageError(
            f"{printed.name}: these lines are of another image, or of an older lock of this one{of}",
            remedy="name the cell that they are of, or run it again: `tfenv verify CELL --kit DIR`",
        )
    return outcome, start


def _require_start(name: str, start: Mapping[str, Any], outcome: verify.Outcome) -> None:
    """Raises UsageError: what wrote the file was not the suite, or did not come to it."""
    kind = start.get("kind")
    if kind in ("stress", "bench"):
        raise UsageError(
            f"{name}: these are lines of {kind}", remedy=f"type: tfenv {kind} CELL --lines {name}"
        )
    if not start:
        lost = "not the suite's first" if outcome.checks or outcome.verdict else "no line of the suite"
        raise UsageError(
            f"{name} holds {lost}: the command that wrote it failed, or its beginning is lost",
            remedy="look at what that command printed on stderr, and run it again: "
            "`tfenv verify CELL --kit DIR` says how",
        )


def _count(said: object) -> int | None:
    return said if type(said) is int and 0 <= said < 1e6 else None


def _start(line: str) -> dict[str, Any]:
    event = event_of(line)
    return event if event and event["event"] == "start" else {}
