"""What a host may have, as data: one entry is a condition on values, a cause and a remedy, with its source.

Conditions and sentences are of the same language as the rules for pasted texts (``tfenv.knowledge``).
Adding one needs no code: an entry here, and a host of tests/doctor_hosts that has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from tfenv.knowledge.conditions import Condition, parse
from tfenv.knowledge.sentences import fill, is_source, link, needed

#: broken: no container gets a GPU, or none runs. absent: there is none, which is no fault. limit: works, with
#: this limit. note: worth knowing.
Grade = Literal["broken", "absent", "limit", "note"]
GRADES: tuple[Grade, ...] = get_args(Grade)
_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
FOLDER = Path(__file__).parent / "findings"


class FindingError(ValueError):
    """An entry that is none; the message names it and says why."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a host may have.

    Args:
        id: its name, stable; layer: one of ``layers.LAYERS``.
        title, cause, remedy: sentences; ``{name}`` is a value, ``[[...]]`` is said where its values are.
        when: conditions, all met; unless: none of these is met.
    """

    id: str
    layer: str
    grade: Grade
    title: str
    cause: str
    remedy: str
    source: str
    when: tuple[Condition, ...]
    unless: tuple[Condition, ...] = ()

    def fits(self, values: Mapping[str, str]) -> bool:
        """Whether a host with these values has it."""
        return all(c.holds(values) for c in self.when) and not any(c.holds(values) for c in self.unless)

    @property
    def link(self) -> str:
        """The address of its source."""
        return link(self.source)

    @property
    def names(self) -> frozenset[str]:
        """The values that it asks for."""
        return frozenset().union(*(condition.names for condition in (*self.when, *self.unless)))


@dataclass(frozen=True, kw_only=True)
class Found:
    """A finding of a host, in words."""

    id: str
    layer: str
    grade: Grade
    title: str
    cause: str
    remedy: str
    source: str


def told(finding: Finding, values: Mapping[str, str]) -> Found:
    """A finding with the values of a host."""
    return Found(
        id=finding.id,
        layer=finding.layer,
        grade=finding.grade,
        title=fill(finding.title, values),
        cause=fill(finding.cause, values),
        remedy=fill(finding.remedy, values),
        source=finding.link,
    )


@cache
def findings(folder: Path = FOLDER) -> tuple[Finding, ...]:
    """All of them, checked.

    Raises:
        FindingError: an entry is none.
    """
    from .layers import LAYERS

    found: dict[str, Finding] = {}
    for layer in LAYERS:
        path = folder / f"{layer.name}.json"
        for entry in json.loads(path.read_text(encoding="utf-8")) if path.is_file() else ():
            one = checked(entry, layer.name)
            if one.id in found:
                raise FindingError(f"{one.id}: there are two of that id")
            found[one.id] = one
    return tuple(found.values())


def checked(entry: Any, layer: str) -> Finding:
    """A finding from an entry of a layer's file.

    Raises:
        FindingError: a key is unknown, missing or not what it should be.
    """
    if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
        raise FindingError("an entry without an id")
    where = entry["id"]
    wrong = (entry.keys() ^ {field.name for field in fields(Finding)}) - {"unless"}
    if wrong:
        raise FindingError(f"{where}: unknown or missing key {', '.join(sorted(wrong))}")
    texts = {key: value for key, value in entry.items() if key not in ("when", "unless")}
    if not all(isinstance(value, str) and value for value in texts.values()):
        raise FindingError(f"{where}: every key but the conditions is a text")
    if not _ID.fullmatch(where) or entry["layer"] != layer or entry["grade"] not in GRADES:
        raise FindingError(f"{where}: its id, layer or grade is not what it should be")
    if not is_source(entry["source"]):
        raise FindingError(f"{where}: 'source' is an https address, or owner/repository#number")
    lists: dict[str, Any] = {}
    for key in ("when", "unless"):
        given = entry.get(key, [])
        if not isinstance(given, list) or (key == "when" and not given):
            raise FindingError(f"{where}: '{key}' is a list of conditions")
        try:
            lists[key] = tuple(parse(text) for text in given)
        except (ValueError, TypeError) as error:
            raise FindingError(f"{where}: {error}") from None
    sure = {c.left for c in lists["when"] if c.operator != "unknown"} | {c.right for c in lists["when"]}
    for key in ("title", "cause", "remedy"):
        if loose := set(needed(entry[key])) - sure:
            raise FindingError(f"{where}: '{key}': {', '.join(sorted(loose))} may be unknown: use [[...]]")
    return Finding(**{**texts, **lists})
