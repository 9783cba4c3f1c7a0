"""The faults of tests/gpu/fault_table.py that show on a CPU as well: found in the real image, without a GPU.

A made-up driver tells of one GPU, and the checks compute on the CPU instead of it.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from client import Docker, Image
from faults import Verifier, check_of
from gpu.fault import Run, runs
from gpu.fault_table import FAULTS
from gpu.judging import Event, cause, false_alarms
from gpu.running import ON_CPU, SEEDS, environment, options
from gpu.telling import seedable
from tfenv.container import Containers
from tfenv.model import Cell, Lock
from tfenv.pipeline import declared
from tfenv.report import Check, Report

pytestmark = pytest.mark.image

SHOWN, _ = seedable(FAULTS, 0, on_cpu=True)


@pytest.fixture(scope="module")
def verifier(docker: Docker, containers: Containers, image: Image, cell: Cell, lock: Lock) -> Verifier:
    return Verifier(docker, containers, image.id, declared(cell, lock, image.id))


def as_event(check: Check) -> Event:
    return {"status": check.status, "findings": [asdict(finding) for finding in check.findings]}


def seeded(verifier: Verifier, seeds: Path, run: Run) -> Report:
    return verifier.run(
        run.check,
        binds={SEEDS: seeds},
        env=environment(run, on_cpu=True),
        options=tuple(options(run)),
        shm=run.shm,
    )


@pytest.mark.parametrize("run", runs(SHOWN), ids=lambda run: run.name)
def test_each_fault_is_found_with_its_cause(verifier: Verifier, seeds: Path, run: Run):
    event = as_event(check_of(seeded(verifier, seeds, run), run.check))
    missed = [fault.name for fault in run.faults if not cause(fault, event)]
    assert missed == [], event


def test_nothing_is_found_without_a_fault(verifier: Verifier, seeds: Path):
    # Without a GPU TensorFlow rightly sees fewer than the made-up driver; and how fast a machine is that
    # others use too is nothing to judge by.
    unfit = {"gpu_visible", *(fault.check for fault in SHOWN if fault.alone)}
    checks = dict.fromkeys(fault.check for fault in SHOWN if fault.check not in unfit)
    env = {"PYTHONPATH": SEEDS, "TFENV_TEST_SEEDS": ",".join(ON_CPU)}
    report = verifier.run(*checks, binds={SEEDS: seeds}, env=env)
    alarms = {name: false_alarms(name, as_event(check_of(report, name)), SHOWN) for name in checks}
    assert {name: found for name, found in alarms.items() if found} == {}
    assert {check_of(report, name).status for name in checks} == {"pass"}
