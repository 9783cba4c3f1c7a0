"""A verdict that an image has already: what passed on these GPUs need not be run again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tfenv import pipeline, report, verify
from tfenv.engine import Engine, run_command
from tfenv.errors import IntegrityError
from tfenv.given_gpus import given
from tfenv.model import Cell, Lock
from tfenv.report import Report
from tfenv.runline import choose_gpus, gpu_here
from tfenv.verify_elsewhere import Asked, smi

_DAY = 24 * 3600


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
    failure no older pass holds either, but for one that was to see another number of GPUs. What is dated
    later than ``now`` (Unix seconds) tells of no order.
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
            here = gpus and made.host.gpus == gpus and made.host.driver == driver
            if same and here and not (made.stand_in or made.other_gpus):
                found.append((made, folder))
    latest = (now() + _DAY) * 1000
    newest = max(found, key=lambda item: (item[0].started, item[0].verdict == "fail"), default=None)
    return newest if newest and newest[0].verdict == "pass" and newest[0].started <= latest else None
