"""From a text to its causes: which rules fit, which of them lead, and what is only noise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, product

from .derived import derive
from .layers import LAYERS
from .library import Library, Look
from .lines import Line, Text
from .pattern import Pattern
from .rule import Rule
from .sentences import fill

_TRIED = 24  # lines that are tried for one pattern, and
_COMBINED = 200  # ways to combine them
_QUOTED = 4  # lines quoted for one rule
_UNKNOWN = 20  # lines that look like errors: the last ones are kept
_ERRORS = re.compile(
    r"^[EF] |\b(?:\w{0,60}(?:error|exception)|fatal|failed|failure|traceback|cannot|can't|could not"
    r"|unable to|abort(?:ed|ing)?|core dumped|killed|segmentation fault|denied|no such file|not found"
    r"|unsatisfied|refused|timed out|panic)\b",
    re.IGNORECASE,
)
#: Lines that say only that an error follows.
_INTRODUCES = ("traceback (most recent", "during handling of the above", "the above exception was the direct")
#: Derived value -> the value that it follows from, whose line is quoted for it.
_BASIS = {
    "capability": "gpu",
    "sm": "gpu",
    **dict.fromkeys(("tf_cuda", "tf_cudnn", "tf_pythons"), "tensorflow"),
}
_CONFIDENCE = ("certain", "likely", "possible")
_EFFECT = ("fails", "degrades", "none")


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A rule that fits: the lines that decided, and the values found."""

    rule: Rule
    lines: tuple[Line, ...]
    values: Mapping[str, str]

    @property
    def title(self) -> str:
        """The cause in a few words."""
        return fill(self.rule.title, self.values)

    @property
    def cause(self) -> str:
        """The cause in full."""
        return fill(self.rule.cause, self.values)

    @property
    def remedy(self) -> str:
        """What to do."""
        return fill(self.rule.remedy, self.values)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cause that nothing else in the text explains, and what follows from it."""

    fit: Fit
    follows: tuple[Fit, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The answer.

    Args:
        causes: the leading one first; noise: rules of harmless lines.
        values: what the text, and whoever asked, said of versions and the like.
        unexplained: lines that look like errors and that no rule knows, the last ones.
        lines: how many different lines were read.
    """

    causes: tuple[Cause, ...] = ()
    noise: tuple[Fit, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    unexplained: tuple[Line, ...] = ()
    lines: int = 0

    @property
    def outcome(self) -> str:
        """That of the leading cause; ``info`` where all is harmless; else ``unknown``."""
        if self.causes:
            return self.causes[0].fit.rule.outcome
        return "info" if self.noise and not self.unexplained else "unknown"


def diagnose(text: Text, rules: Library, given: Mapping[str, str] | None = None) -> Diagnosis:
    """What the rules say of a text.

    Args:
        given: values that are known beside the text, e.g. of a probe; they come before what the text says.
    """
    search = Search(text)
    found = seen(rules.looks, search)
    said = {name: line for name, (_, line) in found.items() if name not in (given or {})}
    values = derive({**{name: value for name, (value, _) in found.items()}, **(given or {})})
    fits = [fit for rule in rules.rules if (fit := _fit(rule, values, said, search))]
    gone = {name for fit in fits for name in fit.rule.over}
    fits = [fit for fit in fits if fit.rule.id not in gone]
    causes = _ranked([fit for fit in fits if not fit.rule.noise])
    known = {line.number for fit in fits for p in fit.rule.patterns for line, _ in search.all(p)}
    errors = (line for line in reversed(text.lines) if line.number not in known and _is_error(line))
    unknown = tuple(reversed([*islice(errors, _UNKNOWN)]))
    return Diagnosis(
        causes=causes,
        noise=tuple(fit for fit in fits if fit.rule.noise),
        values=values,
        unexplained=unknown,
        lines=len(text.lines),
    )


def seen(looks: Iterable[Look], search: Search) -> dict[str, tuple[str, Line]]:
    """The values that a text holds of itself, by name, each with its line."""
    found: dict[str, tuple[str, Line]] = {}
    for look in looks:
        hits = [(values["value"], line) for p in look.patterns for line, values in search.all(p)]
        if hits:
            found[look.name] = (max if look.last else min)(hits, key=lambda hit: hit[1].number)
    return found


def _is_error(line: Line) -> bool:
    return not line.low.startswith(_INTRODUCES) and _ERRORS.search(line.text[:500]) is not None


class Search:
    """Finds the lines of patterns, each pattern once."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._found: dict[str, list[tuple[Line, dict[str, str]]]] = {}

    def all(self, pattern: Pattern) -> list[tuple[Line, dict[str, str]]]:
        """The first lines that a pattern fits, with the values of its holes."""
        known = self._found.get(pattern.text)
        if known is None:
            known = self._found[pattern.text] = list(islice(self._lines(pattern), _TRIED))
        return known

    def _lines(self, pattern: Pattern) -> Iterator[tuple[Line, dict[str, str]]]:
        for line in self._text.holding(pattern.anchors):
            values = pattern.match(line.text, line.low)
            if values is not None:
                yield line, values


def _fit(rule: Rule, values: Mapping[str, str], said: Mapping[str, Line], search: Search) -> Fit | None:
    slots = [search.all(pattern) for pattern in rule.all]
    if rule.any:
        slots.append([hit for pattern in rule.any for hit in search.all(pattern)])
    if not all(slots) or any(search.all(pattern) for pattern in rule.none):
        return None
    for hits in islice(product(*slots), _COMBINED):
        own: dict[str, str] = {}
        if any(own.setdefault(name, value) != value for _, named in hits for name, value in named.items()):
            continue  # the same name for two different values
        known = derive({**values, **own}) if "tensorflow" in own or "gpu" in own else {**values, **own}
        if all(c.holds(known) for c in rule.when) and not any(c.holds(known) for c in rule.unless):
            asked = (_BASIS.get(name, name) for name in rule.uses if name not in own)
            basis = (said[name] for name in asked if name in said)
            lines = dict.fromkeys([*(line for line, _ in hits), *basis])
            return Fit(rule=rule, lines=tuple(lines)[:_QUOTED], values=known)
    return None


def _ranked(fits: list[Fit]) -> tuple[Cause, ...]:
    """Causes, the leading one first; what follows from a cause is told under it."""
    before = {fit.rule.id: [b for b in fits if _explains(b.rule, fit.rule)] for fit in fits}
    roots = [fit for fit in fits if not before[fit.rule.id]] or fits[:1]
    # Several rules may find the same: it is told once, by the one that says it best.
    best = {fit.rule.name: fit for fit in sorted(roots, key=_rank, reverse=True)}
    roots = sorted(best.values(), key=_rank)
    follows: dict[str, list[Fit]] = {fit.rule.id: [] for fit in roots}
    for fit in fits:
        if fit.rule.name in best:
            continue
        reached, wave = {fit.rule.id}, [fit]
        while wave:  # up the chain to what it began with
            wave = [b for f in wave for b in before[f.rule.id] if b.rule.id not in reached]
            reached |= {b.rule.id for b in wave}
        root = next((root for root in roots if root.rule.id in reached), roots[0])
        follows[root.rule.id].append(fit)
    return tuple(Cause(fit=root, follows=tuple(follows[root.rule.id])) for root in roots)


def _explains(cause: Rule, rule: Rule) -> bool:
    if cause.id == rule.id or cause.id in rule.explains:
        return False
    return rule.id in cause.explains or (
        rule.symptom and not cause.symptom and not set(rule.topics).isdisjoint(cause.topics)
    )


def _rank(fit: Fit) -> tuple[int, ...]:
    rule = fit.rule
    first = min((line.number for line in fit.lines), default=0)
    return (
        rule.symptom,
        _EFFECT.index(rule.effect),
        _CONFIDENCE.index(rule.confidence),
        list(LAYERS).index(rule.layer),
        -len(fit.lines),
        first,
    )
