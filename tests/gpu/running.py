"""Run a check of the suite in an unpacked image with faults seeded in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpu.fault import Run
from gpu.judging import Event, events

HERE = Path(__file__).resolve().parent
SUITE, SEEDS = "/tmp/tfenv-verify", "/tmp/tfenv-seeds"  # inside
ON_CPU = ("one_gpu", "on_cpu")  # the seeds with which a CPU stands in for a GPU


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
