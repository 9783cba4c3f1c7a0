"""The command: choose checks, run each in a process of its own, print events, give a verdict."""

from __future__ import annotations

import argparse
import difflib
import faulthandler
import hashlib
import json
import math
import os
import platform
import signal
import sys
import time
from typing import Any, Callable, Iterable, Sequence

from . import child, gpu, library_probe, meeting, places
from .checks import CHECKS, PARTS, SUITES, Check
from .context import Context
from .declared import Declared, load
from .declared import sha256 as declared_sha256
from .distributions import installed, version_of
from .protocol import (
    EXIT_OF_VERDICT,
    EXIT_USAGE,
    FAIL,
    NOT_RUN,
    PASS,
    PROTOCOL,
    UNVERIFIED,
    UsageError,
    emit,
    outcome,
    verdict,
)
from .runner import Ended, judge, run_child, suite_command

PROBE_SECONDS = 120.0  # a cold driver without persistence mode takes tens of seconds to start
# What a whole suite may take, however long its checks may take each: a suite that meets many slow ones
# says what it has not come to, and is not killed from outside with nothing said.
SUITE_SECONDS = {"smoke": 600.0, "full": 1200.0, "workers": 960.0}
LEAST_SECONDS = 5.0  # less than this is not worth starting a check
BETWEEN_SECONDS = 15.0  # to start a check's process, and to drain the pipes of one that was killed


class StoppedError(Exception):
    """Somebody told the suite to stop (SIGTERM, as timeout(1) does)."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit code (0 pass, 1 fail, 2 usage, 3 unverified)."""
    parser = _parser()
    options = parser.parse_args(list(arguments))
    try:
        if options.probe_gpu:
            return child.answer(options.result_fd, lambda: gpu.probe().as_json())
        if options.probe_library:
            name, soname = options.probe_library
            return child.answer(options.result_fd, lambda: library_probe.probe(name, soname))
        if options.part:
            return _run_part(options)
        declared = load(options.declared)
        if options.run_one:
            return _run_one(options, declared)
        options.check = [name for names in options.check for name in names]
        checks = select(options.suite, options.check)
        if options.expect_gpus is not None and not any(c.name == "gpu_visible" for c in checks):
            checks = [*checks, *select("", ["gpu_visible"])]
        within = options.within or (0.0 if options.check else SUITE_SECONDS[options.suite])
        if options.list:
            for check in checks:
                emit(dict(check.as_json(), event="listed"))
            emit({"event": "limit", "limit": seconds_at_most(checks, within)})
            return 0
        _check_cluster(options, checks)
        return _run_all(options, declared, checks, within)
    except UsageError as error:
        sys.stderr.write(f"verify: {error}\n")
        return EXIT_USAGE


def select(suite: str, names: Sequence[str], table: Sequence[Check] = CHECKS) -> list[Check]:
    """The checks to run, in the table's order: those named, else those of the suite.

    Raises:
        UsageError: a name is not in the table; the message has the nearest ones.
    """
    known = [check.name for check in table]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3) or known
            raise UsageError(f"there is no check {name!r}; did you mean {', '.join(near)}?")
    if names:
        return [check for check in table if check.name in names]
    return [check for check in table if suite in check.suites]


def seconds_at_most(checks: Iterable[Check], within: float = 0.0) -> int:
    """How long the suite can take with these checks: the sum of its own limits, or ``within`` if not 0."""
    together = sum(check.timeout + BETWEEN_SECONDS for check in checks)
    return math.ceil(PROBE_SECONDS + (min(together, within + BETWEEN_SECONDS) if within else together))


def run_checks(
    checks: Sequence[Check],
    state: gpu.Gpu,
    run: Callable[[Check], dict[str, Any]],
    report: Callable[[dict[str, Any]], None],
    expect_gpus: int | None = None,
    on_cpu: bool = False,
) -> list[dict[str, Any]]:
    """Run the checks one after another; a GPU check only where there is a GPU.

    ``gpu_visible`` also runs on a broken driver, and where another number of GPUs is expected: it is
    the one that says so. Once the suite is stopped, the rest is not run.
    """
    outcomes = []
    unexpected = expect_gpus is not None and expect_gpus != state.count
    stopped = ""
    for check in checks:
        explains = check.name == "gpu_visible" and (state.state == gpu.BROKEN or unexpected)
        if stopped:
            event = outcome(check.name, NOT_RUN, reason=stopped)
        elif check.needs == "gpu" and state.state != gpu.PRESENT and not explains and not on_cpu:
            event = outcome(check.name, NOT_RUN, reason=state.reason())
        else:
            try:
                event = run(check)
            except StoppedError as error:
                stopped = str(error)
                event = outcome(check.name, NOT_RUN, reason=f"{stopped} while it ran")
        report(event)
        outcomes.append(event)
    return outcomes


def probe_gpu() -> gpu.Gpu:
    """Ask the driver in a process of its own; one that crashes or hangs is a broken driver."""
    ended = run_child(suite_command("--probe-gpu"), PROBE_SECONDS)
    try:
        return gpu.from_json(json.loads(ended.result.decode("utf-8")))
    except (ValueError, TypeError):
        how = "hung" if ended.timed_out else f"ended with code {ended.returncode}"
        return gpu.Gpu(nodes=True, trouble=f"{gpu.PROBE} {how}: {ended.tail}")


def run_in_time(
    check: Check,
    left: float,
    within: float,
    run: Callable[[Check, float], Ended],
) -> dict[str, Any]:
    """Run a check in what is left of the suite's time; what is cut short by that is not run.

    Args:
        left: seconds that are left of ``within``. run: takes a check and its limit in seconds.
    """
    if left < LEAST_SECONDS:
        return outcome(check.name, NOT_RUN, reason=f"the suite's {within:.0f} s were over before it")
    limit = min(check.timeout, left)
    ended = run(check, limit)
    if ended.timed_out and limit < check.timeout:
        reason = f"the suite's {within:.0f} s were over while it ran, after {ended.seconds:.0f} s"
        return outcome(check.name, NOT_RUN, seconds=ended.seconds, reason=reason)
    return judge(check.name, ended, limit)


class Stop:
    """SIGTERM ends the check that runs, and no line that is being written: the verdict still comes."""

    def __init__(self) -> None:
        self._asked = self._running = False

    def handle(self, *_: Any) -> None:
        """What the signal does."""
        self._asked = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self._running:
            raise StoppedError("the suite was stopped by SIGTERM")

    def guard(self, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run something that the signal may end.

        Raises:
            StoppedError: it came, now or before.
        """
        self._running = True
        try:
            if self._asked:
                raise StoppedError("the suite was stopped by SIGTERM")
            return run()
        finally:
            self._running = False


def _run_all(options: Any, declared: Declared, checks: Sequence[Check], within: float) -> int:
    # As PID 1 of a container nothing would stop us on SIGTERM; leave through ``finally`` blocks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    began, wall = time.monotonic(), time.time()
    state = probe_gpu()
    facts = _facts(state)
    emit(
        {
            "event": "start",
            "protocol": PROTOCOL,
            "started": round(wall * 1000),  # Unix milliseconds
            "suite": "" if options.check else options.suite,
            "expect_gpus": options.expect_gpus,
            "checks": [check.as_json() for check in checks],
            "cell": declared.cell,
            "image": declared.image,
            "declared_sha256": declared_sha256(options.declared),
            "suite_sha256": _suite_hash(),
            "gpu": state.told(),
        }
    )

    def start(check: Check, limit: float) -> Ended:
        command = suite_command(
            "--run-one",
            check.name,
            "--declared",
            options.declared,
            "--gpu",
            json.dumps(state.as_json()),
            *(() if options.expect_gpus is None else ("--expect-gpus", str(options.expect_gpus))),
            *("--worker", str(options.worker), "--cluster", options.cluster, "--on-cpu", str(options.on_cpu)),
        )
        return run_child(command, limit)

    def run(check: Check) -> dict[str, Any]:
        left = began + within - time.monotonic() if within else math.inf
        return stop.guard(lambda: run_in_time(check, left, within, start))

    stop = Stop()
    signal.signal(signal.SIGTERM, stop.handle)
    outcomes = run_checks(checks, state, run, emit, options.expect_gpus, bool(options.on_cpu))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    result = verdict(outcomes, {check.name: check.accepted for check in checks})
    counts = dict.fromkeys(("pass", FAIL, NOT_RUN), 0)
    for event in outcomes:
        counts[event["status"]] += 1
    end: dict[str, Any] = {"event": "end", "verdict": result, "counts": counts, "facts": facts}
    if options.on_cpu and result == PASS:
        # The project's own tests: nothing is proved of a GPU.
        result = end["verdict"] = UNVERIFIED
        end["reason"] = "the CPU stood in for GPUs"
    emit(end)
    return EXIT_OF_VERDICT[result]


def _run_one(options: Any, declared: Declared) -> int:
    check = select("", [options.run_one])[0]
    state = gpu.from_json(json.loads(options.gpu))
    cluster = _cluster(options.cluster)
    context = Context(declared, state, options.expect_gpus, options.on_cpu, options.worker, cluster)
    return child.answer(options.result_fd, lambda: child.run_check(check.function, context, check.timeout))


def _run_part(options: Any) -> int:
    name, arguments = options.part[0], json.loads(options.part[1])
    context = Context(gpu=gpu.from_json(json.loads(options.gpu)), on_cpu=options.on_cpu)
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(0.5, arguments["seconds"] * 0.95 - 0.5))

    def produce() -> dict[str, Any]:
        found: dict[str, Any] = PARTS[name](context, arguments)
        faulthandler.cancel_dump_traceback_later()
        return found

    return child.answer(options.result_fd, produce)


def _facts(state: gpu.Gpu) -> dict[str, Any]:
    dists = installed(places.site_folders())
    names = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tf-nightly", "nvidia-tensorflow")
    return {
        "python": platform.python_version(),
        "tensorflow": next(filter(None, (version_of(name, dists) for name in names)), ""),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "cpus": os.cpu_count() or 0,
        "uid": os.getuid(),
        "gpu": state.state,
        "gpus": [device["name"] for device in state.devices],
        "driver": state.kernel,
        "driver_cuda": state.cuda,
    }


def _suite_hash() -> str:
    """The sha256 of the zipapp that runs; empty when run from a folder."""
    try:
        with open(suite_command()[-1], "rb") as stream:
            return hashlib.sha256(stream.read()).hexdigest()
    except OSError:
        return ""


def _check_cluster(options: Any, checks: Sequence[Check]) -> None:
    """The workers have to know each other.

    Raises:
        UsageError: they do not.
    """
    if not any(check.name == "multi_worker" for check in checks):
        return
    cluster = _cluster(options.cluster)
    if len(cluster) < 2:
        raise UsageError("multi_worker needs --cluster HOST:PORT,HOST:PORT and --worker 0 or 1 in each")
    if options.worker >= len(cluster):
        raise UsageError(f"--worker {options.worker}, but the cluster has 0 to {len(cluster) - 1}")
    for address in cluster:
        try:
            meeting.split(address)
        except ValueError as error:
            raise UsageError(f"--cluster: {error}") from error


def _cluster(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="verify.pyz",
        description="Verify a TensorFlow GPU image from the inside. JSON lines on stdout.",
        epilog="Exit codes: 0 pass, 1 fail, 2 usage, 3 unverified.",
    )
    parser.add_argument("--declared", default="", metavar="FILE", help="what the host declares")
    parser.add_argument("--suite", choices=SUITES, default="full", help="default: full")
    parser.add_argument("--check", nargs="+", action="append", default=[], metavar="NAME", help="only these")
    parser.add_argument("--expect-gpus", type=_count, metavar="N", help="fail if another number is seen")
    parser.add_argument(
        "--within",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="what is not done by then is not run (default: {})".format(
            ", ".join(f"{int(seconds)} for {suite}" for suite, seconds in SUITE_SECONDS.items())
        ),
    )
    parser.add_argument(
        "--worker", type=_count, default=0, metavar="N", help="suite workers: which of them this is, from 0"
    )
    parser.add_argument(
        "--cluster", default="", metavar="HOST:PORT,HOST:PORT", help="suite workers: where each of them is"
    )
    parser.add_argument("--list", action="store_true", help="print the checks and their limit")
    parser.add_argument("--run-one", help=argparse.SUPPRESS)
    parser.add_argument("--result-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--gpu", default="{}", help=argparse.SUPPRESS)
    parser.add_argument("--on-cpu", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--probe-gpu", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--probe-library", nargs=2, help=argparse.SUPPRESS)
    return parser
