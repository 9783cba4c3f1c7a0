"""The data files that rules read, each once."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tfenv.resources import facts_dir


@cache
def read(name: str) -> Any:
    """A data file of facts, e.g. ``drivers``."""
    return json.loads((facts_dir() / f"{name}.json").read_text(encoding="utf-8"))
