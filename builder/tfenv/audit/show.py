"""What ``tfenv facts show`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfenv import facts


def one(release: str) -> tuple[dict[str, Any], str]:
    """A release's facts with their sources: as data and as text.

    Raises:
        UsageError: nothing is known of that release.
    """
    facts.compiled(release)
    entry = facts.entry(release)
    return {"tensorflow": release, **entry}, "\n".join(lines(release, entry))


def lines(release: str, entry: Mapping[str, Any]) -> list[str]:
    """A release's facts for people, each with its source below."""
    found = [f"tensorflow {release}"]
    for key, source in entry["source"].items():
        found += [f"  {key}: {_plain(entry[key])}", f"      {source}"]
    return found


def everything() -> tuple[list[dict[str, Any]], str]:
    """All releases, oldest first."""
    entries = [{"tensorflow": release, **facts.entry(release)} for release in facts.releases()]
    table = []
    for entry in entries:
        marks = [mark for mark in ("prerelease", "yanked") if entry[mark]]
        table.append(
            f"{entry['tensorflow']:<13} CUDA {entry['cuda']:<7} cuDNN {entry['cudnn']:<7} "
            f"Python {', '.join(entry['pythons'])}  {' '.join(marks)}".rstrip()
        )
    return entries, "\n".join(table)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(_plain(item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items() if item not in ("", []))
    return {True: "yes", False: "no", "": "none"}.get(value, str(value))
