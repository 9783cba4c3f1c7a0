"""The data files of facts, each read once for all who decide from them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from .resources import facts_dir


@cache
def read(name: str) -> Any:
    """What a data file holds, e.g. ``drivers`` or ``wheels/tensorflow``; shared, so not to be changed."""
    return json.loads((facts_dir() / f"{name}.json").read_text(encoding="utf-8"))
