"""What a suite has to run for a pass: asked of it here, not in the image that it judges."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from tfenv.engine import run_command
from tfenv.errors import IntegrityError

from .suite import Suite, mounted


@dataclass(frozen=True)
class Plan:
    """What a suite has to run for a pass, as the host's own copy of it says.

    Args:
        accepted: by check, the reasons for which it may be not run and the image pass all the same.
        limit: seconds for the whole suite: what its checks may take together.
    """

    names: tuple[str, ...]
    accepted: Mapping[str, tuple[str, ...]]
    limit: int


def plan_of(packed: bytes, suite: Suite) -> Plan:
    """Ask the suite itself, here and not in the image, what it consists of.

    Raises:
        IntegrityError: it does not answer: tfenv's own files are damaged.
    """
    with mounted(packed, {}) as folder:
        command = [sys.executable, "-I", "-B", str(folder / "verify.pyz"), "--list", "--suite", suite]
        done = run_command(command)
    try:
        *listed, last = [json.loads(line) for line in done.stdout.splitlines()]
        plan = Plan(
            names=tuple(str(check["name"]) for check in listed),
            accepted={str(check["name"]): tuple(check["accepted"]) for check in listed},
            limit=int(last["limit"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise IntegrityError(
            f"the verification suite does not list its checks: {done.stderr.strip()[-500:] or error}",
            remedy="install tfenv again",
        ) from error
    if not plan.names:
        raise IntegrityError(f"the suite {suite} has no checks", remedy="install tfenv again")
    return plan
