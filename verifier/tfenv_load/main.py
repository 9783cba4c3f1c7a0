"""The command: ``stress`` or ``bench``; their workers are this same program in another process."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from typing import Any, Sequence

from . import bench, measure, plan, products, stress
from .devices import NoGpuError
from .lines import printer, writer
from .models import MODELS


def main(arguments: Sequence[str]) -> int:
    """Run the command; its exit code: 0 done, 1 failed, 2 usage, 3 no GPU."""
    options = _parser().parse_args(list(arguments))
    # As PID 1 of a container nothing would stop us on SIGTERM; leave through ``finally`` blocks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return int(options.run(options))


def _stress(options: Any) -> int:
    return stress.run(printer(), options)


def _bench(options: Any) -> int:
    quick = options.quick
    options.models = options.models.split(",")
    options.seconds = options.seconds or (150.0 if quick else 3600.0)
    options.repeats = options.repeats or (3 if quick else 5)
    options.limit = options.limit or (150.0 if quick else 300.0)
    options.each = options.each or (0.8 if quick else 2.0)
    return bench.run(printer(), options)


def _stress_worker(options: Any) -> int:
    emit = writer(options.result_fd)
    try:
        products.run(
            emit,
            seconds=options.seconds,
            size=options.size,
            count=options.gpus,
            allow_cpu=options.allow_cpu,
            spoil=options.spoil,
        )
    except NoGpuError as error:
        emit({"event": "no-gpu", "why": str(error)})
    return 0


def _bench_worker(options: Any) -> int:
    emit = writer(options.result_fd)
    config = plan.from_json(json.loads(options.config))
    try:
        emit(
            measure.run(config, repeats=options.repeats, seconds=options.seconds, allow_cpu=options.allow_cpu)
        )
    except Exception as error:
        traceback.print_exc()
        emit({"error": "{}: {}".format(type(error).__name__, error)[:4000]})
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="load.pyz",
        description="Load the GPUs from inside an image. JSON lines on stdout.",
        epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 no GPU.",
    )
    commands = parser.add_subparsers(dest="command", metavar="stress|bench")
    commands.required = True

    def command(name: str, run: Any, shown: str = "") -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=shown) if shown else commands.add_parser(name)
        made.set_defaults(run=run)
        made.add_argument("--gpus", type=int, default=0, help="the first so many; 0: all")
        made.add_argument("--allow-cpu", action="store_true", help=argparse.SUPPRESS)
        return made

    loud = command("stress", _stress, "is it right, and does it stay cool?")
    loud.add_argument("--minutes", type=float, default=5.0)
    loud.add_argument("--interval", type=float, default=1.0, help="seconds between samples")
    loud.add_argument("--start-seconds", type=float, default=0.0, help=argparse.SUPPRESS)
    worker = command("stress-worker", _stress_worker)
    worker.add_argument("--seconds", type=float, required=True)
    for one in (loud, worker):
        one.add_argument("--size", type=int, default=0, help="of the square matrices; 0: 8192")
        one.add_argument("--spoil", type=int, default=-1, help=argparse.SUPPRESS)

    fast = command("bench", _bench, "how fast does it train?")
    fast.add_argument("--quick", action="store_true", help="what fits in 150 s")
    fast.add_argument("--models", default=",".join(MODELS))
    fast.add_argument("--batch", type=int, default=0, help="for each GPU; 0: by its memory")
    fast.add_argument("--each", type=float, default=0.0, help="seconds of a repeat")
    fast.add_argument("--limit", type=float, default=0.0, help="seconds after which it counts as hung")
    worker_of = command("bench-worker", _bench_worker)
    worker_of.add_argument("--config", required=True)
    for one in (fast, worker_of):
        one.add_argument("--repeats", type=int, default=0)
        one.add_argument("--seconds", type=float, default=0.0, help="for all")
    for one in (worker, worker_of):
        one.add_argument("--result-fd", type=int, required=True, help=argparse.SUPPRESS)
    return parser
