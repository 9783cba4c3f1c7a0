"""What each installed distribution requires is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Callable

from ..context import Context
from ..protocol import NotRunError, Report

ABSENT = "pip is not installed in this image"


def check(context: Context, report: Report) -> None:
    """``pip check`` finds no missing and no conflicting requirement."""
    if importlib.util.find_spec("pip") is None:
        if "pip" not in context.declared.packages:
            raise NotRunError(ABSENT)
        report.error("pip is in the lock, but not installed", remedy="rebuild the image from its lock")
        return
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
        report.warning if context.declared.foreign else report.error,
    )


def judge(
    code: int, output: str, errors: str, report: Report, say: Callable[..., None] | None = None
) -> None:
    """Each line of pip is an error of its own, or what ``say`` says."""
    if code == 0:
        return
    lines = [line for line in output.splitlines() if line.strip()]
    for line in lines:
        (say or report.error)(line.strip(), remedy="lock again: the set of wheels does not fit together")
    if not lines:
        report.error(f"pip check ended with {code}", errors[-2000:])
