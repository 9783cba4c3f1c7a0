#!/usr/bin/env python3
"""Seed every fault of fault_table.py in an unpacked image on a GPU host; is each found, and nothing else?

Needs Python 3.10 or newer, root, and what `python3 -m tfenv.rootfs_run` needs; neither Docker nor network:

    python3 tests/gpu/run_faults.py --rootfs DIR --config CFG.json --verifier DIR --out FILE

One JSON line for each fault and for each check without a fault. Exit codes: 0 all found and no false
alarm, 1 not so, 3 some could not be seeded here or in the time given.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:  # run as a file, with nothing installed
    sys.path.insert(0, str(HERE.parent))

from gpu.fault import Fault, Run, runs  # noqa: E402
from gpu.fault_table import FAULTS  # noqa: E402
from gpu.running import Bench, execute, prepare  # noqa: E402
from gpu.telling import UNTOUCHED, not_run, outcome, seedable, told, told_untouched, untouched  # noqa: E402

MOST_SECONDS = 240.0  # for one run


def work(
    bench: Bench, faults: Sequence[Fault], seconds: float, jobs: int, say: Callable[[dict[str, Any]], None]
) -> None:
    """Run all, several at a time, and last those that others would disturb."""
    deadline = time.monotonic() + seconds
    every = [*runs(faults), *untouched(faults, on_cpu=bench.on_cpu)]
    together = sorted((run for run in every if not run.alone), key=lambda run: -run.limit)

    def one(run: Run) -> None:
        left = deadline - time.monotonic()
        try:
            if left < 10:
                raise TimeoutError(f"the {seconds:.0f} s were over before it")
            ran = execute(bench, run, min(left, MOST_SECONDS))
            if time.monotonic() > deadline and ran.event(run.check) is None:
                raise TimeoutError(f"the {seconds:.0f} s were over while it ran")
        except (OSError, KeyError, ValueError) as error:  # this image lacks what the fault needs
            for fault in run.faults:
                say(
                    {
                        "name": fault.name,
                        "check": fault.check,
                        "caught": None,
                        "cause": "",
                        "reason": str(error),
                    }
                )
            return
        for line in told_untouched(run, ran, faults) if run.name == UNTOUCHED else told(run, ran):
            say(line)

    for runs_, workers in ((together, jobs), ([run for run in every if run.alone], 1)):
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(one, runs_))


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rootfs", type=Path, required=True, help="the image's files")
    parser.add_argument("--config", type=Path, required=True, help="its manifest and config")
    parser.add_argument("--verifier", type=Path, required=True, help="with verify.pyz and declared.json")
    parser.add_argument("--out", type=Path, help="where the lines go, too")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="faults, runs or checks")
    parser.add_argument("--seconds", type=float, default=300.0, help="what is not begun by then is not run")
    parser.add_argument("--jobs", type=int, default=max(1, min(6, (os.cpu_count() or 1) // 2)))
    parser.add_argument("--builder", type=Path, default=HERE.parents[1] / "builder", help="tfenv's source")
    parser.add_argument("--on-cpu", action="store_true", help="a CPU stands in for the GPU")
    parser.add_argument(
        "--patience",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="to the limits of what hangs, where kernels are compiled from PTX",
    )
    given = parser.parse_args(list(argv))
    wanted = set(given.only)
    faults = [f for f in FAULTS if not wanted or wanted & {f.name, f.run, f.check}]
    if not faults:
        parser.error(f"no such fault: {' '.join(given.only)}")
    gpus = sum(re.fullmatch(r"nvidia\d+", path.name) is not None for path in Path("/dev").iterdir())
    can, cannot = seedable(faults, gpus, on_cpu=given.on_cpu)
    lines: list[dict[str, Any]] = []
    lock = threading.Lock()

    def say(line: dict[str, Any]) -> None:
        with lock:
            lines.append(line)
            print(json.dumps(line), flush=True)
            if given.out:
                given.out.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")

    for fault in cannot:
        reason = "needs a GPU" if given.on_cpu else f"needs {fault.least_gpus} GPUs"
        say(not_run(fault, reason))
    with tempfile.TemporaryDirectory(prefix="tfenv-faults-") as scratch:
        bench = Bench(
            rootfs=given.rootfs.resolve(),
            config=given.config,
            suite=given.verifier,
            builder=given.builder.resolve(),
            scratch=Path(scratch),
            on_cpu=given.on_cpu,
            patience=given.patience,
        )
        prepare(bench)
        work(bench, can, given.seconds, given.jobs, say)
    return outcome(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
