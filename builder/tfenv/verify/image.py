"""Verify one image, from mounting the suite to the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfenv.container import Bind, Spec
from tfenv.errors import NotReadyError, UsageError
from tfenv.report import Check, Host, Report

from .engine import expecting
from .judging import NO_GPU, judge
from .plan import Plan, plan_of
from .running import FOLDER, Job, Runner, Start, in_one
from .suite import Suite, mounted, pack, suite_hash
from .told import with_gpus


def verify_image(
    ref: str,
    declared: Mapping[str, Any],
    *,
    digest: str | None,
    host: Host,
    start: Start | None = None,
    runner: Runner | None = None,
    suite: Suite = "smoke",
    gpus: bool | str = False,
    more: Sequence[str] = (),
    expect_gpus: int | None = None,
    timeout: int | None = None,
    endpoint: str = "",
    stand_in: str = "",
    packed: bytes | None = None,
    plan_of: Callable[[bytes, Suite], Plan] = plan_of,
    on_check: Callable[[Check], None] = lambda _check: None,
    clock: Callable[[], float] = time.time,
) -> Report:
    """Verify the image ``ref``, whose manifest has ``digest`` (None: it is not here).

    Args:
        start: runs a container: ``Containers.container``. runner: how the suite is run, if not in one.
        gpus: give it all GPUs, or as of ``Spec.gpus``. more: arguments of the suite.
        expect_gpus: how many GPUs the image shall see; None for any number.
        timeout: seconds for the whole suite, else what its plan says.
        endpoint: the engine's; the suite is mounted from this machine, so it must be local.
        stand_in: the base image that a stand-in replaces in ``ref``, if one does.
        on_check: gets each check as it ends.

    Raises:
        UsageError: no such image. NotReadyError: the engine cannot run it here.
    """
    if runner is None:
        assert start is not None
        runner = in_one(start)
    if digest is None:
        raise UsageError(f"there is no image {ref} here", remedy=f"run `tfenv build {ref}`")
    if endpoint.startswith(("tcp://", "ssh://", "http://", "https://")):
        raise NotReadyError(
            f"the engine at {endpoint} does not see this machine's files",
            remedy="run `tfenv verify` on the machine of the engine",
        )
    code = pack() if packed is None else packed
    plan = plan_of(code, suite)
    limit = plan.limit if timeout is None else timeout
    began = clock()
    with mounted(code, declared) as folder:
        spec = Spec(image=ref, gpus=gpus, binds=(Bind(folder, FOLDER),))
        outcome, ended, stderr = runner(Job(spec, suite, limit, (*more, *expecting(expect_gpus)), on_check))
    verdict, outcome = judge(outcome, ended, stderr, limit, plan)
    if verdict == "pass" and not gpus:
        # The container was given no GPU: whatever the image says of one is not true.
        verdict, outcome.reason = "unverified", NO_GPU
    host = with_gpus(host, outcome.facts) if gpus else host
    if verdict == "pass" and not host.gpus:
        verdict, outcome.reason = "unverified", NO_GPU  # neither the host nor the suite names one
    return Report(
        image=ref,
        digest=digest,
        suite=suite,
        suite_hash=suite_hash(code, suite, declared),
        verdict=verdict,
        host=host,
        checks=tuple(outcome.checks),
        started=round(began * 1000),
        seconds=max(0.0, round(clock() - began, 3)),  # the clock may have been set meanwhile
        reason=outcome.reason if verdict == "unverified" else "",
        facts=outcome.facts,
        stand_in=stand_in,
        expect_gpus=expect_gpus,
    )
