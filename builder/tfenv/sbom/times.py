"""Times of a bill."""

from __future__ import annotations

from datetime import datetime, timezone


def rfc3339(epoch: int) -> str:
    """Unix seconds as ``2024-03-20T00:00:00Z``."""
    return datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
