"""Pythons that no base brings: builds of a named provider, pinned by hash in a data file."""

from __future__ import annotations

from collections.abc import Mapping

from tfenv import factfiles
from tfenv.errors import UsageError
from tfenv.model import Interpreter
from tfenv.versions import order


def offered() -> tuple[str, ...]:
    """The Python versions that the provider has, e.g. ``3.10``, lowest first."""
    return tuple(sorted(factfiles.read("pythons")["pythons"], key=order))


def interpreter(python: str) -> Interpreter:
    """The provider's build of a Python such as ``3.10``.

    Raises:
        UsageError: it has none.
    """
    facts = factfiles.read("pythons")
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

    facts = factfiles.read("pythons")
    at = env.get(facts["mirror_variable"]) or facts["at"]
    return (f"{at.rstrip('/')}/{quote(of.path)}",)
