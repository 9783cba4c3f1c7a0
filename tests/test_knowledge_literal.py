"""Texts are found without regular expressions as with them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tfenv.knowledge import library
from tfenv.knowledge.pattern import Pattern, parse

PATTERNS = sorted(
    {p.text: p for rule in library().rules for p in (*rule.patterns, *rule.none)}.values(),
    key=lambda pattern: pattern.text,
)
EDGES = ["", " ", "a", "7", "_", ".", "\t", "  ", "A", "\u00e9", "\u017f", "\u212a", "\u0130"]


def slowly(pattern: Pattern, line: str) -> dict[str, str] | None:
    """With regular expressions alone."""
    return replace(pattern, literal=None, heads=("",) * len(pattern.parts)).match(line)


@pytest.mark.parametrize(
    ("pattern", "line", "fits"),
    [
        ("exit 1", "an EXIT 1", True),
        ("exit 1", "sexit 1 and exit 1", True),
        ("exit 1", "exit 12 and exit 1", True),
        ("exit 1", "exit 12", False),
        ("a b ... c d", "A B x C D", True),
        ("a b ... c d", "c d a b", False),
        ("^ab cd", "x ab cd", False),
        ("ab cd$", "ab cd, ab cd  ", True),
        ("ab cd$", "ab cd.", False),
        ("^ab cd$", "ab cd ", True),
        ("ab ab$", "ab ab ab", True),
    ],
)
def test_a_pattern_without_holes(pattern: str, line: str, fits: bool) -> None:
    read = parse(pattern)
    assert read.literal is not None
    assert read.match(line) == slowly(read, line) == ({} if fits else None)


def test_a_pattern_with_holes_is_tried_where_its_text_stands() -> None:
    read = parse("loaded {a:version}, compiled ... {b:version} here")
    assert read.literal is None and read.heads == ("loaded ", "")
    line = "unloaded 1 loaded x, Loaded 8.0.5, compiled with 8.1.0 here"
    assert read.match(line) == slowly(read, line) == {"a": "8.0.5", "b": "8.1.0"}


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(PATTERNS), st.data())
def test_every_pattern_of_the_rules(pattern: Pattern, data: st.DataObject) -> None:
    pieces = [*pattern.heads, *(pattern.literal.texts if pattern.literal else ()), *pattern.anchors, *EDGES]
    line = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=12)))
    line = data.draw(st.sampled_from([line, line.lower(), line.upper()]))
    assert pattern.match(line) == slowly(pattern, line)
