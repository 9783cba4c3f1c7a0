"""Pythons that no base brings: builds of a named provider, pinned by hash in a data file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from tfenv.errors import UsageError
from tfenv.model import Interpreter
from tfenv.resources import facts_dir
from tfenv.versions import order


@cache
def _facts() -> Any:
    return json.loads((facts_dir() / "pythons.json").read_text(encoding="utf-8"))


def offered() -> tuple[str, ...]:
    """The Python versions that the provider has, e.g. ``3.10``, lowest first."""
    return tuple(sorted(_facts()["pythons"], key=order))


def interpreter(python: str) -> Interpreter:
    """The provider's build of a Python such as ``3.10``.

    Raises:
        UsageError: it has none.
    """
    facts = _facts()
    found = facts["pythons"].get(python)
    if found is None:
        raise UsageError(
            f"{facts['provider']} has no Python {python} that is known here",
            remedy=f"use one of {', '.join(offered())}, or add it to builder/tfenv/facts/pythons.json",
        )
    build = found["build"]
    return Interpreter(
        provider=facts["provider"],
        version=found["version"],
        filename=found["filename"],
        path=f"{build}/{found['filename']}",
        sha256=found["sha256"],
        released=f"{build[:4]}-{build[4:6]}-{build[6:]}T00:00:00Z",
    )


def urls(of: Interpreter, env: Mapping[str, str]) -> tuple[str, ...]:
    """Where to get it: from the mirror that the user has told uv of, else from the provider."""
    from urllib.parse import quote

    facts = _facts()
    at = env.get(facts["mirror_variable"]) or facts["at"]
    return (f"{at.rstrip('/')}/{quote(of.path)}",)
