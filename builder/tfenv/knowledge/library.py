"""All rules of a folder: each file is one rule or a list of them, in JSON. A new rule needs no code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .pattern import Pattern, PatternError
from .pattern import parse as parse_pattern
from .rule import Rule, RuleError, parse

FOLDER = Path(__file__).parent / "rules"
SEEN = Path(__file__).parent / "seen.json"
#: Values that are derived from others with the tables of facts, see ``derived.py``.
DERIVED = frozenset(
    {"tf_minor", "tf_cuda", "tf_cuda_major", "tf_cudnn", "tf_cudnn_major", "tf_pythons", "capability", "sm"}
)


@dataclass(frozen=True)
class Look:
    """How a value is found: the hole ``value`` of a pattern, in the first or the last line that fits."""

    name: str
    patterns: tuple[Pattern, ...]
    last: bool


@dataclass(frozen=True)
class Library:
    """The rules by id, in order, and the values that are looked for in every text."""

    rules: tuple[Rule, ...]
    looks: tuple[Look, ...]

    def get(self, id: str) -> Rule:
        """The rule of that name."""
        return next(rule for rule in self.rules if rule.id == id)

    def texts(self, examples: tuple[str, ...]) -> tuple[str, ...]:
        """Examples, with those that are borrowed from other rules (``@id``)."""
        found: list[str] = []
        for text in examples:
            found += self.get(text[1:]).examples if text.startswith("@") else [text]
        return tuple(found)


def load(folder: Path = FOLDER, *more: Path) -> Library:
    """Read and check all rules.

    Args:
        more: further folders, e.g. a team's own rules.

    Raises:
        RuleError: names the file and the entry that is wrong, and why.
    """
    looks = tuple(_look(name, entry) for name, entry in _read(SEEN).items())
    values = _values(folder)
    known = frozenset(look.name for look in looks) | DERIVED | values
    rules: dict[str, Rule] = {}
    for path in sorted(p for place in (folder, *more) for p in place.glob("*.json") if p.name[0] != "_"):
        content = _read(path)
        for entry in content if isinstance(content, list) else [content]:
            try:
                rule = parse(entry, known)
                if rule.id in rules:
                    raise RuleError(f"{rule.id}: there is another rule of that name")
            except RuleError as error:
                raise RuleError(f"{path.name}: {error}") from None
            rules[rule.id] = rule
    for rule in rules.values():
        named = (*rule.explains, *rule.over, *(t[1:] for t in rule.counterexamples if t[:1] == "@"))
        for other in named:
            if other not in rules or other == rule.id:
                raise RuleError(f"{rule.id}: there is no other rule {other}")
    return Library(tuple(rules.values()), looks)


@cache
def library() -> Library:
    """The rules that come with tfenv."""
    return load()


def _values(folder: Path) -> frozenset[str]:
    """Values that probes give: ``rules/_values.json`` holds their names, each with what it is."""
    path = folder / "_values.json"
    return frozenset(_read(path)) if path.is_file() else frozenset()


def _look(name: str, entry: Any) -> Look:
    try:
        patterns = tuple(map(parse_pattern, entry["patterns"]))
    except PatternError as error:
        raise RuleError(f"{SEEN.name}: {name}: {error}") from None
    if not all("value" in pattern.names for pattern in patterns):
        raise RuleError(f"{SEEN.name}: {name}: each pattern needs a hole named 'value'")
    return Look(name, patterns, entry.get("take") == "last")


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RuleError(f"{path.name}: {error}") from None
