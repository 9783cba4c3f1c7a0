"""Which GPUs a container is given, in the engine's own words."""

from __future__ import annotations

from typing import Any


def device_request(gpus: bool | str) -> dict[str, Any]:
    """The arguments of the engine's device request.

    Args:
        gpus: True or ``all``; a number of GPUs; or those that are named, as ``device=0,1`` or ``0,1``.
    """
    request: dict[str, Any] = {"capabilities": [["gpu"]]}
    if gpus is True or gpus in ("all", "auto"):
        return {**request, "count": -1}
    text = str(gpus)
    if text.isdigit():
        return {**request, "count": int(text)}
    return {**request, "device_ids": [part.strip() for part in text.removeprefix("device=").split(",")]}
