"""What each installed distribution requires is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

from ..context import Context
from ..protocol import NotRunError, Report


def check(_context: Context, report: Report) -> None:
    """``pip check`` finds no missing and no conflicting requirement."""
    if importlib.util.find_spec("pip") is None:
        raise NotRunError("pip is not installed in this image")
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pip", "--no-cache-dir", "check"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1"),
        check=False,
    )
    judge(
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
        report,
    )


def judge(code: int, output: str, errors: str, report: Report) -> None:
    """Each line of pip is an error of its own."""
    if code == 0:
        return
    lines = [line for line in output.splitlines() if line.strip()]
    for line in lines:
        report.error(line.strip(), remedy="lock again: the set of wheels does not fit together")
    if not lines:
        report.error(f"pip check ended with {code}", errors[-2000:])
