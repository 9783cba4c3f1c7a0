"""What ``tfenv facts show`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfenv import facts
from tfenv.versions import is_final, minor

#: What the keys of the file mean to those who read it.
_WORDS = {
    "sass": "sass (machine code for compute capabilities)",
    "ptx": "ptx (compiled by the driver at first use)",
    "opens": "opens (libraries, by soname)",
    "from": "from compute capability",
    "isa": "PTX",
    "what": "for",
    "how": "",
    "until": "up to compute capability",
}


def one(release: str) -> tuple[dict[str, Any], str]:
    """A release's facts with their sources: as data and as text.

    Args:
        release: ``2.15.1``, or ``2.15`` for the newest final release of it that is known.

    Raises:
        UsageError: nothing is known of that release.
    """
    finals = [known for known in facts.releases() if is_final(known) and minor(known) == release]
    release = finals[-1] if finals else release
    facts.compiled(release)
    entry = facts.entry(release)
    return {"tensorflow": release, **entry}, "\n".join(lines(release, entry))


def lines(release: str, entry: Mapping[str, Any]) -> list[str]:
    """A release's facts for people, each with its source below."""
    found = [f"tensorflow {release}"]
    for key, source in entry["source"].items():
        found += [f"  {_WORDS.get(key, key)}: {_plain(entry[key])}", f"      {source}"]
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
        join = "; " if any(isinstance(item, dict) for item in value) else ", "
        return join.join(_plain(item) for item in value) or "none"
    if isinstance(value, dict):
        words = {**_WORDS, "sass": "machine code for"}
        told = (
            (words.get(key, key), _plain(item)) for key, item in value.items() if item not in ("", [], None)
        )
        return ", ".join(f"{word} {text}".strip() for word, text in told)
    return {True: "yes", False: "no", "": "none"}.get(value, str(value))
