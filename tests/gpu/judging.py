"""Was a fault found by the right check, with the right cause? And is nothing found without it?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gpu.fault import Fault

Event = Mapping[str, Any]


def events(text: str) -> list[Event]:
    """The ``check`` events among the suite's lines; whatever else is printed is passed over."""
    found: list[Event] = []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "check":
            found.append(event)
    return found


def _told(fault: Fault, event: Event) -> Mapping[str, str] | None:
    return next(
        (
            one
            for one in event["findings"]
            if one["severity"] in fault.severity.split(" or ")
            and re.search(fault.cause, f"{one['message']}\n{one['evidence']}")
        ),
        None,
    )


def cause(fault: Fault, event: Event) -> str:
    """The message of the finding that names the cause; empty if there is none, or it has no consequence.

    A finding that is an error has to fail the check, and one that is not ``info`` to say what to do.
    """
    found = _told(fault, event)
    if found is None:
        return ""
    if found["severity"] == "error" and event["status"] != "fail":
        return ""
    return found["message"] if found["remedy"] or found["severity"] == "info" else ""


def false_alarms(check: str, event: Event, faults: Iterable[Fault]) -> list[str]:
    """What a check says of an image without a fault that is an error, or the cause of a fault."""
    errors = [one["message"] for one in event["findings"] if one["severity"] == "error"]
    mistaken = [fault.name for fault in faults if fault.check == check and _told(fault, event)]
    return errors + mistaken
