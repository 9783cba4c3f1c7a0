"""Patterns of lines: plain text with holes, so that no rule can hold a regular expression that hangs.

``Loaded runtime CuDNN library: {loaded:version} but source was compiled with: {compiled:version}``

- Text is compared without regard to case; a space stands for any white space.
- ``{name:type}`` takes a value of a type below and names it; ``{type}`` takes it without a name.
- ``{a|b}`` or ``{name:a|b}`` is one of several texts; ``{{`` and ``}}`` are braces.
- ``...`` is a gap: anything on the same line.
- ``^`` at the start and ``$`` at the end hold the pattern to the ends of the message.

Every quantifier is bounded, a gap is a search that never goes back, and two greedy holes need a separator
that neither can take: matching a line takes time in proportion to its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from .literal import Literal, from_head

#: What a hole can take. Each is one bounded run without alternatives that overlap.
TYPES = {
    "version": r"[0-9]{1,9}(?:[.][0-9]{1,9}){0,4}",
    "dotted": r"[0-9]{1,9}(?:[.][0-9]{1,9}){1,4}",
    "release": r"[0-9]{1,4}(?:[.][0-9]{1,9}){1,3}(?:[.]?(?:post|dev|rc|a|b)[0-9]{1,9}){0,2}",
    "number": r"[0-9]{1,18}",
    "decimal": r"[0-9]{1,12}(?:[.][0-9]{1,6})?",
    "size": r"[0-9]{1,15}(?:[.][0-9]{1,3})? ?[KMGT]?i?B?",
    "hex": r"[0-9a-f]{1,128}",
    "name": r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_])?",
    "word": r"[^\s'\"`,;:()\[\]<>]{1,200}",
    "path": r"[^\s'\"`,;:()<>]{1,300}",
    "any": r".{1,120}?",
    # What CUDA_VISIBLE_DEVICES cannot be: neither numbers nor ids of GPUs, nor empty.
    "nodevice": r"(?!GPU-|MIG-|-?[0-9]|['\"\s])[^\s'\";,]{1,100}",
}
_GREEDY = ("word", "path", "any", "nodevice")
_SEPARATORS = " '\"`,;:()[]<>"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_HOLE = re.compile(r"\{\{|\}\}|\{([^{}]{1,400})\}| ?\.\.\. ?")
_LONG = 4  # letters that need no help of a choice
_SHORTEST = 2  # letters of the text that every pattern has to hold


class PatternError(ValueError):
    """A pattern that is not one; the message says why."""


@dataclass(frozen=True)
class Pattern:
    """A pattern, read and found to be safe.

    Args:
        text: as it was written; parts: the regular expressions between its gaps.
        names: of its holes; anchors: texts in lower case, of which every line that matches holds one.
        heads: texts in lower case that the parts begin with, empty where one begins with a hole.
        literal: the same without regular expressions, for lines of ASCII; None where it has holes.
    """

    text: str
    parts: tuple[str, ...]
    names: frozenset[str]
    anchors: tuple[str, ...]
    heads: tuple[str, ...]
    literal: Literal | None = None

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(part, re.IGNORECASE) for part in self.parts)

    def match(self, line: str, low: str = "") -> dict[str, str] | None:
        """The values of the holes where the line, or part of it, fits; else None.

        Args:
            low: the line in lower case, where that is known.
        """
        plain = line.isascii()  # else lower case may have another length
        low = (low or line.lower()) if plain else ""
        if self.literal and plain:
            return {} if self.literal.fits(low) else None
        values: dict[str, str] = {}
        at = 0
        for part, head in zip(self._compiled, self.heads, strict=True):
            found = from_head(part, line, at, low, head) if plain and head else part.search(line, at)
            if found is None:
                return None
            values.update({name: value for name, value in found.groupdict().items() if value is not None})
            at = found.end()
        return values


def parse(text: str) -> Pattern:
    """Read a pattern.

    Raises:
        PatternError: it has an unknown type, no text to find it by, or holes that take each other's share.
    """
    body = " ".join(text.split())
    start, end = body.startswith("^"), body.endswith("$")
    body = body[1 if start else 0 : -1 if end else None]
    parts: list[str] = []
    names: set[str] = set()
    literals: list[str] = []
    heads: list[str] = []
    choices: list[tuple[str, ...]] = []
    expression, greedy, between, at = "", "", "", 0

    def literal(piece: str) -> None:
        nonlocal expression, between
        if piece:
            between += piece
            expression += re.escape(piece).replace(r"\ ", " ")

    def ended() -> None:
        literals.append(between)
        if len(heads) == len(parts):
            heads.append(between)

    for found in _HOLE.finditer(body):
        literal(body[at : found.start()])
        at = found.end()
        token = found.group()
        if token in ("{{", "}}"):
            literal(token[0])
        elif token.strip() == "...":
            ended()
            parts.append(expression)
            expression, greedy, between = "", "", ""
        else:
            if greedy and (not between or (greedy != "any" and between[0] not in _SEPARATORS)):
                raise PatternError(f"{text!r}: two holes need a separator between them, such as a space")
            ended()
            name, kind, source, alternatives = _hole(found.group(1), text)
            if alternatives:
                choices.append(alternatives)
            if name:
                if name in names:
                    raise PatternError(f"{text!r}: two holes are named {name}")
                names.add(name)
            greedy = kind if kind in _GREEDY else ""
            if kind == "any" and TYPES["any"] in expression:
                raise PatternError(f"{text!r}: two holes that take anything; use a gap between them")
            expression += f"(?P<{name}>{source})" if name else f"(?:{source})"
            between = ""
    literal(body[at:])
    ended()
    parts.append(expression)
    rest = _HOLE.sub("", body)
    if "{" in rest or "}" in rest:
        raise PatternError(f"{text!r}: a brace that belongs to no hole; write {{{{ for a brace")
    if not all(parts):
        raise PatternError(f"{text!r}: a gap at an end, or two together, says nothing")
    if parts[-1].endswith("}?)"):  # nothing follows that would end it
        parts[-1] = parts[-1][:-2] + ")"
    word, number = not start and _starts_word(body), not end and body[-1:].isdigit()
    parts[0] = ("^" if start else "(?<![A-Za-z0-9])" if word else "") + parts[0]
    parts[-1] += r"\s*$" if end else "(?![0-9])" if number else ""
    anchors = _anchors(literals, choices)
    if not anchors:
        raise PatternError(f"{text!r}: no text of {_SHORTEST} letters to find it by")
    plain = all(map(str.isascii, literals))
    low = tuple(head.lower() if plain else "" for head in heads)
    return Pattern(
        text=text,
        parts=tuple(parts),
        names=frozenset(names),
        anchors=anchors,
        heads=low,
        literal=Literal(low, start, word, end, number) if plain and len(literals) == len(parts) else None,
    )


def _anchors(literals: list[str], choices: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest text; where that is short, the alternatives of a hole, if all of them are longer."""
    longest = max(literals, key=len).strip().lower()
    best = max(choices, key=lambda of: min(map(_letters, of)), default=())
    if best and _letters(longest) < _LONG and min(map(_letters, best)) > _letters(longest):
        return tuple(dict.fromkeys(text.strip().lower() for text in best))
    return (longest,) if _letters(longest) >= _SHORTEST else ()


def _letters(text: str) -> int:
    return len(re.sub(r"[^a-z0-9/_]", "", text.lower()))


def _hole(inside: str, text: str) -> tuple[str, str, str, tuple[str, ...]]:
    """(name or empty, type or empty, expression, alternatives or none) of what stands between braces."""
    name, colon, rest = inside.partition(":")
    if not (colon and _NAME.fullmatch(name)):
        name, rest = "", inside
    if "|" in rest:
        choices = tuple(sorted(rest.split("|"), key=len, reverse=True))
        return name, "", "|".join(re.escape(choice).replace(r"\ ", " ") for choice in choices), choices
    if rest not in TYPES:
        raise PatternError(f"{text!r}: {rest!r} is no type of a hole ({', '.join(TYPES)})")
    return name, rest, TYPES[rest], ()


def _starts_word(body: str) -> bool:
    """Whether a pattern begins with a letter or a digit in any case: then a word has to begin there."""
    if body[:1] != "{" or body[:2] == "{{":
        return body[:1].isalnum()
    choices = _hole(body[1 : body.index("}")], body)[3]
    return all(choice[:1].isalnum() for choice in choices)
