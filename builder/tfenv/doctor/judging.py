"""From values to a verdict: layer after layer from the bottom up; blame stops at the first that is broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tfenv.errors import EXIT_FAILED, EXIT_NOT_READY, EXIT_OK, EXIT_UNVERIFIED
from tfenv.knowledge.conditions import parse
from tfenv.knowledge.sentences import fill, needed

from .findings import GRADES, Finding, Found, findings, told
from .layers import LAYERS, Layer, below

#: ok, limit: it works. broken: it does not. absent: there is none, which is no fault. unknown: it could not
#: be told. skipped: not looked at, because of a layer below.
State = Literal["ok", "limit", "broken", "absent", "unknown", "skipped"]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A layer of a host.

    Args:
        seen: what was seen, in words; because: why it is skipped or not known.
    """

    name: str
    title: str
    state: State
    seen: str = ""
    because: str = ""
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """All layers, and the findings in the order in which they are to be seen to: the first leads."""

    layers: tuple[Judged, ...]
    found: tuple[Found, ...]

    @property
    def code(self) -> int:
        """The exit code: 0 ready, 1 something is broken, 4 no GPU or no engine, 3 it could not be told."""
        states = {layer.state for layer in self.layers}
        vital = {layer.name for layer in LAYERS if layer.vital}
        if "broken" in states:
            return EXIT_FAILED
        if "absent" in states:
            return EXIT_NOT_READY
        return (
            EXIT_UNVERIFIED if any(j.state == "unknown" and j.name in vital for j in self.layers) else EXIT_OK
        )

    def as_dict(self) -> dict[str, Any]:
        """The verdict as data for JSON."""
        return asdict(self)


def judge(values: Mapping[str, str], rules: Iterable[Finding] | None = None) -> Verdict:
    """The verdict on a host with these values."""
    rules = findings() if rules is None else tuple(rules)
    layers: list[Judged] = []
    for layer in LAYERS:
        layers.append(_layer(layer, values, [rule for rule in rules if rule.layer == layer.name], layers))
    found = [one for layer in layers for one in layer.found]
    return Verdict(layers=tuple(layers), found=tuple(sorted(found, key=lambda one: GRADES.index(one.grade))))


def _layer(layer: Layer, values: Mapping[str, str], rules: list[Finding], done: list[Judged]) -> Judged:
    states = {judged.name: judged for judged in done}
    for name in below(layer.name):
        if states[name].state in ("broken", "absent"):
            return Judged(name=layer.name, title=layer.title, state="skipped", because=_why(states[name]))
    found = tuple(told(rule, values) for rule in rules if rule.fits(values))
    seen = _seen(layer, values)
    grades = {one.grade for one in found}
    state: State = "ok"
    because = ""
    if "broken" in grades or "absent" in grades:
        state = "broken" if "broken" in grades else "absent"
    elif layer.proof and not any(all(parse(c).holds(values) for c in group) for group in layer.proof):
        told_of = found[0].title if found else values.get("smi_said") if layer.name != "engine" else ""
        state, because = "unknown", told_of or "what was seen does not tell"
        seen = ""
    elif "limit" in grades:
        state = "limit"
    return Judged(name=layer.name, title=layer.title, state=state, seen=seen, because=because, found=found)


def _why(judged: Judged) -> str:
    if judged.state == "absent":
        return f"there is no {judged.title}"
    return f"first the {judged.title}"


def _seen(layer: Layer, values: Mapping[str, str]) -> str:
    for template in layer.seen:
        if all(values.get(name) for name in needed(template)):
            return fill(template, values)
    return ""
