"""The suite itself is told to be quicker, or to compute on the CPU: what the tests need, no faults."""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import Any

CPUS = 2  # logical ones that stand in for GPUs


def _limit() -> float:
    return float(os.environ["TFENV_TEST_LIMIT"])


def shorter_checks(checks: Any) -> None:
    """No check may take longer than $TFENV_TEST_LIMIT seconds: a hang is to be seen sooner."""
    table = tuple(dataclasses.replace(row, timeout=min(row.timeout, _limit())) for row in checks.CHECKS)
    checks.CHECKS = table


def shorter_parts(multi_gpu: Any) -> None:
    """Likewise for each kind of all-reduce."""
    multi_gpu.SECONDS = min(multi_gpu.SECONDS, _limit())


def shorter_probe(main: Any) -> None:
    """Likewise for the probe of the driver."""
    main.PROBE_SECONDS = min(main.PROBE_SECONDS, _limit())


def on_cpu(main: Any) -> None:
    """Each check computes on the CPU, as in the suite's own tests."""
    real = main._run_one

    def run_one(options: Any, declared: Any) -> Any:
        options.on_cpu = CPUS
        return real(options, declared)

    main._run_one = run_one


def hidden(main: Any) -> None:
    """TensorFlow is shown no GPU, although the driver showed one to the probe."""
    if "--run-one" in sys.argv:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"


#: By seed: the module that has to be there, and what is done to it.
SEEDS: dict[str, tuple[str, Any]] = {
    "shorter_checks": ("tfenv_verify.checks", shorter_checks),
    "shorter_parts": ("tfenv_verify.checks.multi_gpu", shorter_parts),
    "shorter_probe": ("tfenv_verify.main", shorter_probe),
    "on_cpu": ("tfenv_verify.main", on_cpu),
    "hidden": ("tfenv_verify.main", hidden),
}
