"""What becomes of faults: which are seeded, and a line for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gpu.fault import Fault, Run
from gpu.judging import cause, false_alarms
from gpu.running import Ran

UNTOUCHED = "untouched"


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


def outcome(lines: Iterable[dict[str, Any]]) -> int:
    """The exit code."""
    seen = list(lines)
    wrong = [one for one in seen if one["caught"] is (one["name"] == UNTOUCHED)]
    return 1 if wrong or not seen else 3 if any(one["caught"] is None for one in seen) else 0
