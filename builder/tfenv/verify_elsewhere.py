"""Verdicts without an engine: of an unpacked image, of lines printed elsewhere, or a former one."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tfenv import build, pipeline, report, verify
from tfenv import digest as digests
from tfenv.container import Ended
from tfenv.engine import Completed, Engine, run_command
from tfenv.errors import IntegrityError, UsageError
from tfenv.eventlines import event_of, lines_in
from tfenv.files import LINES_MOST, read_text
from tfenv.given_gpus import given, there
from tfenv.model import Cell, Lock
from tfenv.report import Check, Report
from tfenv.rootfs_run import Rootfs, find_driver
from tfenv.runline import choose_gpus, gpu_here
from tfenv.unpacked import Unpacked, read_unpacked
from tfenv.workspace import Workspace

_DAY = 24 * 3600
ROOTFS = "rootfs"  # in the place of the engine's version


@dataclass(frozen=True)
class Asked:
    """What the user asks for, of whatever image.

    Args:
        gpus: as of ``--gpus``. expect_gpus: how many the image shall see; None for any number.
        lines_suite: the suite that lines which were printed elsewhere have to be of; None for any.
    """

    suite: verify.Suite = "full"
    gpus: str = "auto"
    expect_gpus: int | None = None
    lines_suite: verify.Suite | None = None


def smi(argv: Sequence[str]) -> Completed:
    """Run a command of the driver, also where it is in NVIDIA's own folder and not on the path."""
    folder = find_driver().folder
    found = folder / "bin" / argv[0] if folder else None
    return run_command([str(found), *argv[1:]] if found and found.exists() else list(argv))


def in_rootfs(
    image: Unpacked,
    declared: Mapping[str, Any],
    asked: Asked,
    *,
    on_check: Callable[[Check], None] = lambda _check: None,
) -> Report:
    """Run the suite in an unpacked image on this host.

    Raises:
        NotReadyError: this host cannot run it.
    """
    engine = Engine(kernel=platform.release(), server_version=ROOTFS)
    wanted, _ = choose_gpus(asked.gpus, gpu_here(lambda argv: smi(argv).returncode == 0))
    gpus, start = there(given(wanted), smi), Rootfs(image, keep=os.environ).container
    return verify.verify_image(
        image.digest,
        declared,
        digest=image.digest,
        host=verify.host_facts(smi, engine, gpus=gpus),
        runner=verify.on_loopback(start) if asked.suite == "workers" else verify.in_one(start),
        suite=asked.suite,
        gpus=gpus,
        more=verify.expecting(asked.expect_gpus),
        on_check=on_check,
    )


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


def former_pass(
    folders: Iterable[Path],
    digest: str,
    suite_hash: str,
    gpus: tuple[str, ...],
    driver: str,
    now: Callable[[], float] = time.time,
) -> tuple[Report, Path] | None:
    """The newest verdict of the same image, suite, GPUs and driver, if it is a pass, and its folder.

    Only a pass holds again: what failed, or could not be run, may have been the host's doing. After a
    failure no older pass holds either. What is dated later than ``now`` (Unix seconds) tells of no order.
    """
    found = []
    prefix = f"{digest.removeprefix('sha256:')[:12]}-{suite_hash[:12]}-"
    for parent in folders:
        for folder in sorted(parent.glob(f"{prefix}*")):
            try:
                made = report.read(folder)
            except IntegrityError:
                continue
            same = (made.digest, made.suite_hash) == (digest, suite_hash) and made.verdict != "unverified"
            if same and made.host.gpus == gpus and made.host.driver == driver and gpus and not made.stand_in:
                found.append((made, folder))
    latest = (now() + _DAY) * 1000
    newest = max(found, key=lambda item: (item[0].started, item[0].verdict == "fail"), default=None)
    return newest if newest and newest[0].verdict == "pass" and newest[0].started <= latest else None


def former_of(
    cell: Cell, lock: Lock, digest: str, folders: Iterable[Path], asked: Asked
) -> tuple[Report, Path] | None:
    """The pass that this image, of the cell and its lock, has of this suite on this host's GPUs."""
    return former(digest, lambda: pipeline.declared(cell, lock, digest), folders, asked)


def former(
    digest: str, declared: Callable[[], Mapping[str, Any]], folders: Iterable[Path], asked: Asked
) -> tuple[Report, Path] | None:
    """The pass that an image has of this suite on this host's GPUs; None where others are expected."""
    wanted, _ = choose_gpus(asked.gpus, gpu_here(lambda argv: run_command(argv).returncode == 0))
    if wanted is None:
        return None
    host = verify.host_facts(smi, Engine(), gpus=given(wanted))
    if asked.expect_gpus not in (None, len(host.gpus)):
        return None
    suite_hash = verify.suite_hash(verify.pack(), asked.suite, declared())
    return former_pass(folders, digest, suite_hash, host.gpus, host.driver)


def of_cell(
    workspace: Workspace,
    cell: Cell,
    host: build.Host,
    asked: Asked,
    *,
    rootfs: Path | None,
    lines: Path | None,
    digest: str = "",
) -> Report:
    """The verdict on the cell's image in ``rootfs``, or on what the suite printed into ``lines``.

    Args:
        digest: of the image in which the lines were printed; empty for the one that is recorded.

    Raises:
        UsageError: nobody says which image it was. NotReadyError: this host cannot run it.
    """
    lock = workspace.lock(cell)
    if rootfs is not None:
        image = read_unpacked(rootfs)
        declared = pipeline.declared(cell, lock, image.digest)

        def tell(done: Check) -> None:
            host.console.note(f"  {done.status:<8} {done.name}  {report.summary(done)}")

        made = in_rootfs(image, declared, asked, on_check=tell)
    else:
        assert lines is not None
        known = image_digest(workspace, cell, digest)
        made = of_lines(lines, pipeline.declared(cell, lock, known), known, asked.lines_suite)
    return replace(made, image=cell.name)


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


def image_digest(workspace: Workspace, cell: Cell, said: str) -> str:
    """The digest that the user said, else the recorded one.

    Raises:
        UsageError: neither is known.
    """
    recorded = digests.read(workspace.folder(cell))
    if said:
        return whole_digest(said)
    if recorded is None:
        raise UsageError(
            f"no digest is recorded for {cell.name}, so the lines cannot be of it",
            remedy=f"run `tfenv build {cell.name} --record` first, or name the image's with --digest",
        )
    return recorded.manifest


def whole_digest(text: str) -> str:
    """The digest as it is written in full.

    Raises:
        UsageError: it is not.
    """
    if not re.fullmatch("sha256:[0-9a-f]{64}", text):
        raise UsageError(f"{text} is not a digest", remedy="give all of it: sha256:...")
    return text
