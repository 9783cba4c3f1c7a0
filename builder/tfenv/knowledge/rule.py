"""One rule: what it looks for, what it then says, and the texts that prove it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args

from . import conditions
from .conditions import Condition
from .layers import LAYERS, Confidence, Effect, Outcome
from .pattern import Pattern, PatternError
from .pattern import parse as parse_pattern
from .sentences import is_source, link, needed, places

_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
#: Values that are never known without the other, see ``derived.py``.
_TOGETHER = {
    "tf_cudnn": ("tf_cudnn_major", "tf_minor", "tensorflow"),
    "tf_cuda": ("tf_cuda_major", "tf_minor", "tensorflow"),
    "tensorflow": ("tf_minor",),
    "capability": ("sm",),
}
_REQUIRED = ("id", "layer", "title", "cause", "remedy", "source", "confidence", "examples", "counterexamples")


class RuleError(ValueError):
    """An entry that is no rule; the message names it and says why."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What is known of one failure.

    Args:
        id: its name, stable; code: name of what it finds, where several rules find the same.
        layer: where the cause lies, one of ``layers.LAYERS``.
        title: the cause in a few words; cause, remedy: in full. ``{name}`` is a value that a hole of a
            pattern or the text gave; what stands in ``[[...]]`` is said only where its values are known.
        source: where it is known from, an address or ``owner/repository#number``.
        confidence: of the cause, where the rule fits: certain, likely or possible.
        any: one of these fits a line; all: each fits some line; none: none fits any line.
        when: conditions on values, all met; unless: none of these is met.
        effect: what it does to the user's program; ``none`` is noise that everybody sees.
        outcome: what a tool has to do about it.
        topics: what it is about. A symptom yields to every other cause with a topic of its own.
        cells: whether the cells that run with the driver or GPU of the text are a remedy.
        explains: rules that are consequences of this one.
        over: rules that are wrong where this one fits, and are not told.
        examples, counterexamples: texts that it fits, and texts that it does not, alike or harmless;
            ``@id`` stands for the examples of another rule.
    """

    id: str
    layer: str
    title: str
    cause: str
    remedy: str
    source: str
    confidence: Confidence
    code: str = ""
    any: tuple[Pattern, ...] = ()
    all: tuple[Pattern, ...] = ()
    none: tuple[Pattern, ...] = ()
    when: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()
    effect: Effect = "fails"
    outcome: Outcome = "diagnose"
    topics: tuple[str, ...] = ()
    symptom: bool = False
    cells: bool = False
    explains: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the rule finds, for programs."""
        return self.code or self.id

    @property
    def noise(self) -> bool:
        """Whether it only says that a line is harmless."""
        return self.effect == "none"

    @property
    def link(self) -> str:
        """The address of its source."""
        return link(self.source)

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """The values that its conditions ask for and its cause tells."""
        asked = (name for condition in self.when for name in sorted(condition.names))
        return tuple(dict.fromkeys([*asked, *places(self.cause)]))

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns that decide for it."""
        return (*self.any, *self.all)


def parse(entry: Any, known: frozenset[str]) -> Rule:
    """A rule from an entry of a file.

    Args:
        known: names of values that may be known without the rule's own patterns.

    Raises:
        RuleError: a key is unknown, missing or not what it should be.
    """
    if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
        raise RuleError("an entry without an id")
    where = entry["id"][:80]

    def wrong(why: str) -> RuleError:
        return RuleError(f"{where}: {why}")

    names = {field.name for field in fields(Rule)}
    if extra := sorted(map(str, set(entry) - names)):
        raise wrong(f"unknown key {', '.join(extra)} (known: {', '.join(sorted(names))})")
    if missing := [name for name in _REQUIRED if not entry.get(name)]:
        raise wrong(f"missing key {', '.join(missing)}")
    values: dict[str, Any] = {}
    for field in fields(Rule):
        if field.name not in entry:
            continue
        value = entry[field.name]
        if field.type == "bool":
            if not isinstance(value, bool):
                raise wrong(f"'{field.name}' is true or false")
        elif field.type.startswith("tuple"):
            if not isinstance(value, list) or not value or not all(isinstance(v, str) and v for v in value):
                raise wrong(f"'{field.name}' is a list of texts")
            value = tuple(value)
        elif not isinstance(value, str):
            raise wrong(f"'{field.name}' is a text")
        values[field.name] = value
    try:
        for key in ("any", "all", "none"):
            values[key] = tuple(map(parse_pattern, values.get(key, ())))
        for key in ("when", "unless"):
            values[key] = tuple(map(conditions.parse, values.get(key, ())))
    except (PatternError, ValueError) as error:
        raise wrong(str(error)) from None
    rule = Rule(**values)
    for key, allowed in (
        ("layer", tuple(LAYERS)),
        ("confidence", get_args(Confidence)),
        ("effect", get_args(Effect)),
        ("outcome", get_args(Outcome)),
    ):
        if getattr(rule, key) not in allowed:
            raise wrong(f"'{key}' is one of {', '.join(allowed)}")
    _check(rule, known, wrong)
    return rule


def _check(rule: Rule, known: frozenset[str], wrong: Any) -> None:
    if not _ID.fullmatch(rule.id):
        raise wrong("an id is of small letters, digits and hyphens")
    if not rule.patterns and not rule.when:
        raise wrong("it looks for nothing: 'any', 'all' or 'when' is needed")
    if not is_source(rule.source):
        raise wrong("'source' is an https address, or owner/repository#number")
    if rule.symptom and not rule.topics:
        raise wrong("a symptom needs topics: what it yields to")
    given = known.union(*(pattern.names for pattern in rule.patterns))
    for key in ("title", "cause", "remedy"):
        text = getattr(rule, key)
        if unknown := sorted(set(places(text)) - given):
            raise wrong(f"'{key}': nothing gives a value for {', '.join(unknown)}")
    asked = frozenset().union(*(condition.names for condition in (*rule.when, *rule.unless)))
    if unknown := sorted(asked - given):
        raise wrong(f"a condition asks for {', '.join(unknown)}, which nothing gives")
    # A value that only one of several alternatives gives is not there where another one fits.
    sure = frozenset().union(
        *(pattern.names for pattern in rule.all), *(c.names for c in rule.when if c.operator != "unknown")
    )
    if rule.any:
        sure |= frozenset.intersection(*(pattern.names for pattern in rule.any))
    sure |= frozenset(also for name in sure for also in _TOGETHER.get(name, ()))
    for key in ("title", "cause", "remedy"):
        loose = set(needed(getattr(rule, key))) - sure
        if loose:
            raise wrong(
                f"'{key}': {', '.join(sorted(loose))} may be unknown: say it in an optional part [[...]]"
            )
