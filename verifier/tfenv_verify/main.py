"""The command: choose checks, run each in a process of its own, print events, give a verdict."""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import math
import os
import platform
import signal
import sys
from typing import Any, Callable, Iterable, Sequence

from . import child, gpu, library_probe, places
from .checks import CHECKS, SUITES, Check
from .context import Context
from .declared import Declared, load
from .distributions import installed, version_of
from .protocol import (
    EXIT_OF_VERDICT,
    EXIT_USAGE,
    FAIL,
    NOT_RUN,
    PROTOCOL,
    UsageError,
    emit,
    outcome,
    verdict,
)
from .runner import judge, run_child, suite_command

PROBE_SECONDS = 120.0  # a cold driver without persistence mode takes tens of seconds to start
BETWEEN_SECONDS = 15.0  # to start a check's process, and to drain the pipes of one that was killed


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
        declared = load(options.declared)
        if options.run_one:
            return _run_one(options, declared)
        options.check = [name for names in options.check for name in names]
        checks = select(options.suite, options.check)
        if options.list:
            for check in checks:
                emit(dict(check.as_json(), event="listed"))
            emit({"event": "limit", "limit": seconds_at_most(checks)})
            return 0
        return _run_all(options, declared, checks)
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


def seconds_at_most(checks: Iterable[Check]) -> int:
    """How long the suite can take with these checks: the sum of its own limits."""
    return math.ceil(PROBE_SECONDS + sum(check.timeout + BETWEEN_SECONDS for check in checks))


def run_checks(
    checks: Sequence[Check],
    state: gpu.Gpu,
    run: Callable[[Check], dict[str, Any]],
    report: Callable[[dict[str, Any]], None],
) -> list[dict[str, Any]]:
    """Run the checks one after another; a GPU check only where there is a GPU.

    ``gpu_visible`` also runs on a broken driver: it is the one that says what is broken.
    """
    outcomes = []
    for check in checks:
        usable = state.state == gpu.PRESENT or (state.state == gpu.BROKEN and check.name == "gpu_visible")
        if check.needs == "gpu" and not usable:
            event = outcome(check.name, NOT_RUN, reason=state.reason())
        else:
            event = run(check)
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
        return gpu.Gpu(nodes=True, trouble=f"the probe of the driver {how}: {ended.tail}")


def _run_all(options: Any, declared: Declared, checks: Sequence[Check]) -> int:
    # As PID 1 of a container nothing would stop us on SIGTERM; leave through ``finally`` blocks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    state = probe_gpu()
    facts = _facts(state)
    emit(
        {
            "event": "start",
            "protocol": PROTOCOL,
            "suite": "" if options.check else options.suite,
            "checks": [check.as_json() for check in checks],
            "cell": declared.cell,
            "image": declared.image,
            "suite_sha256": _suite_hash(),
            "gpu": state.as_json(),
        }
    )

    def run(check: Check) -> dict[str, Any]:
        command = suite_command(
            "--run-one",
            check.name,
            "--declared",
            options.declared,
            "--gpu",
            json.dumps(state.as_json()),
        )
        return judge(check.name, run_child(command, check.timeout), check.timeout)

    outcomes = run_checks(checks, state, run, emit)
    result = verdict(outcomes, {check.name: check.accepted for check in checks})
    counts = dict.fromkeys(("pass", FAIL, NOT_RUN), 0)
    for event in outcomes:
        counts[event["status"]] += 1
    emit({"event": "end", "verdict": result, "counts": counts, "facts": facts})
    return EXIT_OF_VERDICT[result]


def _run_one(options: Any, declared: Declared) -> int:
    check = select("", [options.run_one])[0]
    context = Context(declared, gpu.from_json(json.loads(options.gpu)))
    return child.answer(options.result_fd, lambda: child.run_check(check.function, context, check.timeout))


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="verify.pyz",
        description="Verify a TensorFlow GPU image from the inside. JSON lines on stdout.",
        epilog="Exit codes: 0 pass, 1 fail, 2 usage, 3 unverified.",
    )
    parser.add_argument("--declared", default="", metavar="FILE", help="what the host declares")
    parser.add_argument("--suite", choices=SUITES, default="full", help="default: full")
    parser.add_argument("--check", nargs="+", action="append", default=[], metavar="NAME", help="only these")
    parser.add_argument("--list", action="store_true", help="print the checks and their limit")
    parser.add_argument("--run-one", help=argparse.SUPPRESS)
    parser.add_argument("--result-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--gpu", default="{}", help=argparse.SUPPRESS)
    parser.add_argument("--probe-gpu", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--probe-library", nargs=2, help=argparse.SUPPRESS)
    return parser
