"""The child's side: run one part, send what it yields through the result pipe."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import traceback
from typing import Any, Callable

from .protocol import FAIL, NOT_RUN, NotRunError, Report


def answer(result_fd: int, produce: Callable[[], dict[str, Any]]) -> int:
    """Call ``produce`` and write its object to ``result_fd``, which no grandchild inherits."""
    os.set_inheritable(result_fd, False)
    payload = json.dumps(produce(), default=str).encode("utf-8")
    sys.stdout.flush()
    with os.fdopen(result_fd, "wb") as stream:
        stream.write(payload)
    return 0


def run_check(function: Callable[[Any, Report], None], context: Any, timeout: float) -> dict[str, Any]:
    """Run one check. An exception is a failed check with the traceback as evidence."""
    faulthandler.enable()
    # Shortly before the parent's limit, so that a hang shows where it hung.
    faulthandler.dump_traceback_later(max(0.5, timeout * 0.97 - 0.5))
    report = Report()
    result: dict[str, Any] = {}
    try:
        function(context, report)
        result["status"] = report.status
    except NotRunError as reason:
        # What was already found wrong is not forgotten because a later step cannot be made.
        result["status"] = FAIL if report.status == FAIL else NOT_RUN
        result["reason"] = str(reason)
    except Exception as error:
        report.error(
            f"{type(error).__name__}: {error}",
            traceback.format_exc(),
            "the check itself met something it does not expect; the traceback says where",
        )
        result["status"] = FAIL
    finally:
        faulthandler.cancel_dump_traceback_later()
    result["findings"], result["facts"] = report.findings, report.facts
    return result
