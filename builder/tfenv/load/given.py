"""Of what NVML says: the GPUs that the run was given, by the numbers that TensorFlow has for them.

Where no container keeps the others from it, NVML shows all of the host's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Event = Mapping[str, Any]
#: Events that number the GPUs as the host does; the others do as TensorFlow.
_OF_HOST = frozenset({"gpu", "sample", "errors", "xid"})


def of_given(events: Iterable[Event], start: Event) -> list[Event]:
    """The events without those of other GPUs.

    Args:
        start: the first event, which holds the CUDA_VISIBLE_DEVICES of the run. Where that is not there, or
            is no list of numbers, the events stay as they are.
    """
    environment = start.get("environment")
    visible = environment.get("CUDA_VISIBLE_DEVICES") if isinstance(environment, Mapping) else None
    names = str(visible or "").split(",")
    if not all(name.isascii() and name.isdigit() for name in names):
        return list(events)
    numbers = {int(name): number for number, name in enumerate(names)}
    found = []
    for event in events:
        gpu = event.get("gpu")
        if event["event"] not in _OF_HOST or type(gpu) is not int or gpu < 0:
            found.append(event)
        elif gpu in numbers:
            found.append({**event, "gpu": numbers[gpu]})
    return found
