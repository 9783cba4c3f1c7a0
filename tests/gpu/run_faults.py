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
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:  # run as a file, with nothing installed
    sys.path.insert(0, str(HERE.parent))

from gpu.fault_table import FAULTS, Fault, Run, runs  # noqa: E402
from gpu.judging import Event, cause, events, false_alarms  # noqa: E402

SUITE, SEEDS = "/tmp/tfenv-verify", "/tmp/tfenv-seeds"  # inside
ON_CPU = ("one_gpu", "on_cpu")  # the seeds with which a CPU stands in for a GPU
MOST_SECONDS = 240.0  # for one run
UNTOUCHED = "untouched"


@dataclass(frozen=True)
class Bench:
    """Where faults are seeded.

    Args:
        suite: a folder with verify.pyz and declared.json. scratch: one of ours.
        patience: a factor to the limits of what hangs.
    """

    rootfs: Path
    config: Path
    suite: Path
    builder: Path
    scratch: Path
    on_cpu: bool = False
    patience: float = 1.0


@dataclass(frozen=True)
class Ran:
    """What one run of the suite printed."""

    stdout: str
    stderr: str
    seconds: float

    def event(self, check: str) -> Event | None:
        return next((event for event in events(self.stdout) if event["name"] == check), None)


def environment(run: Run, *, on_cpu: bool, patience: float = 1.0) -> dict[str, str]:
    """The variables that seed a run's faults; ``patience`` is a factor to its limit."""
    seeds = [*(ON_CPU if on_cpu else ()), *run.seeds]
    more = {"PYTHONPATH": SEEDS, "TFENV_TEST_SEEDS": ",".join(seeds)} if seeds else {}
    limit = {"TFENV_TEST_LIMIT": str(run.limit * patience)} if run.limit else {}
    return {**more, **limit, **run.env}


def options(run: Run) -> list[str]:
    """What the suite is given beside the name of the check."""
    return [] if run.expect_gpus is None else ["--expect-gpus", str(run.expect_gpus)]


def prepare(bench: Bench) -> None:
    """Copies that every user may read: the image's need not be ours."""
    shutil.copytree(HERE / "seeds", bench.scratch / "seeds", ignore=shutil.ignore_patterns("__pycache__"))
    (bench.scratch / "empty").write_bytes(b"")
    for path in (bench.scratch, *bench.scratch.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def inside(rootfs: Path, patterns: Iterable[str]) -> list[str]:
    """The image's paths of the regular files that match."""
    found = [
        path
        for pattern in patterns
        for top in ("opt", "usr")
        for path in sorted((rootfs / top).glob(pattern))
        if path.is_file() and not path.is_symlink()
    ]
    return ["/" + str(path.relative_to(rootfs)) for path in found]


def command(bench: Bench, run: Run, suite: Path) -> list[str]:
    """The command line that runs the check of a run in the image, with its faults."""
    gone = inside(bench.rootfs, run.absent)
    if run.absent and not gone:
        raise FileNotFoundError(f"the image has no {' or '.join(run.absent)}")
    binds = [
        (suite, SUITE),
        (bench.scratch / "seeds", SEEDS),
        *((bench.scratch / "empty", one) for one in gone),
    ]
    line = [sys.executable, "-m", "tfenv.rootfs_run"]
    line += ["--rootfs", str(bench.rootfs), "--config", str(bench.config)]
    line += ["--gpus", run.gpus, "--shm-size", run.shm]
    for source, target in binds:
        line += ["--bind", f"{source}:{target}"]
    for name, value in environment(run, on_cpu=bench.on_cpu, patience=bench.patience).items():
        line += ["--env", f"{name}={value}"]
    line += ["--", "python", "-B", f"{SUITE}/verify.pyz", "--declared", f"{SUITE}/declared.json"]
    return [*line, *options(run), "--check", run.check]


def execute(bench: Bench, run: Run, seconds: float) -> Ran:
    """Run the check; ended after ``seconds`` whatever it does."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=bench.scratch) as name:
        suite = Path(name)
        shutil.copy(bench.suite / "verify.pyz", suite)
        declared = json.loads((bench.suite / "declared.json").read_text(encoding="utf-8"))
        (suite / "declared.json").write_text(json.dumps(run.declare(declared)), encoding="utf-8")
        for path in (suite, *suite.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
        env = {**os.environ, "PYTHONPATH": str(bench.builder), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            command(bench, run, suite),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            text=True,
            errors="replace",
        )
        # Interrupted, not killed: so that it ends what it has started.
        timer = threading.Timer(seconds, process.send_signal, (signal.SIGINT,))
        timer.start()
        try:
            out, err = process.communicate(timeout=seconds + 30)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        finally:
            timer.cancel()
    return Ran(out, err, time.monotonic() - began)


def told(run: Run, ran: Ran) -> list[dict[str, Any]]:
    """A line for each fault of a run."""
    event = ran.event(run.check)
    lines = []
    for fault in run.faults:
        found = cause(fault, event) if event else ""
        line = {
            "name": fault.name,
            "check": fault.check,
            "caught": bool(found),
            "cause": found,
            "seconds": round(ran.seconds, 1),
            "run": run.name,
        }
        if not found:
            said = [f"{one['severity']}: {one['message']}" for one in event["findings"]] if event else []
            line.update(status=event["status"] if event else "no result", said=said, tail=ran.stderr[-3000:])
        lines.append(line)
    return lines


def told_untouched(run: Run, ran: Ran, faults: Sequence[Fault]) -> list[dict[str, Any]]:
    """The line of a check without a fault: ``caught`` is what it says wrongly."""
    event = ran.event(run.check)
    alarms = false_alarms(run.check, event, faults) if event else ["no result"]
    line = {
        "name": UNTOUCHED,
        "check": run.check,
        "caught": bool(alarms),
        "cause": "; ".join(alarms),
        "status": event["status"] if event else "no result",
        "seconds": round(ran.seconds, 1),
    }
    if alarms:
        line["tail"] = ran.stderr[-3000:]
    return [line]


def untouched(faults: Sequence[Fault], *, on_cpu: bool) -> list[Run]:
    """A run without a fault for each check."""
    found = []
    for check in dict.fromkeys(fault.check for fault in faults):
        # Without a GPU TensorFlow rightly sees fewer than the made-up driver.
        if not (on_cpu and check == "gpu_visible"):
            alone = any(fault.alone for fault in faults if fault.check == check)
            found.append(Run(UNTOUCHED, (Fault(name=UNTOUCHED, check=check, cause="", alone=alone),)))
    return found


def seedable(faults: Iterable[Fault], gpus: int, *, on_cpu: bool) -> tuple[list[Fault], list[Fault]]:
    """Those that can be seeded here, and those that cannot."""
    can: list[Fault] = []
    cannot: list[Fault] = []
    for fault in faults:
        (can if (fault.on_cpu if on_cpu else gpus >= fault.least_gpus) else cannot).append(fault)
    return can, cannot


def not_run(fault: Fault, reason: str) -> dict[str, Any]:
    """The line of a fault that was not seeded."""
    return {"name": fault.name, "check": fault.check, "caught": None, "cause": "", "reason": reason}


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


def outcome(lines: Iterable[dict[str, Any]]) -> int:
    """The exit code."""
    seen = list(lines)
    wrong = [one for one in seen if one["caught"] is (one["name"] == UNTOUCHED)]
    return 1 if wrong or not seen else 3 if any(one["caught"] is None for one in seen) else 0


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
