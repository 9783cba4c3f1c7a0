"""Conditions on values: versions, texts, and what is not known."""

from __future__ import annotations

import pytest
from tfenv.knowledge.conditions import parse

VALUES = {
    "loaded": "8.0.5",
    "compiled": "8.1",
    "tf": "2.16.0rc0",
    "release": "focal",
    "ok": "OK",
    "empty": "",
}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("loaded < compiled", True),
        ("loaded >= compiled", False),
        ("loaded == 8.0.5.0", True),
        ("loaded != 8.0.5", False),
        ("major(loaded) == major(compiled)", True),
        ("minor(loaded) < minor(compiled)", True),
        ("tf >= 2.16", True),
        ("tf < 2.9", False),
        ("release in bionic focal", True),
        ("ok in ok works", True),
        ("release not in jammy noble", True),
        ("known loaded", True),
        ("known nothing", False),
        ("known empty", False),
        ("unknown nothing", True),
        ("nothing < compiled", False),
        ("loaded != nothing", False),
        ("nothing not in a b", False),
        ("release < compiled", False),
    ],
)
def test_condition(condition: str, holds: bool) -> None:
    assert parse(condition).holds(VALUES) is holds


@pytest.mark.parametrize(
    "text", ["", "a", "a =< b", "a < ", "a in ", "A < b", "a < 'b'", "a < b c", "known A"]
)
def test_no_condition(text: str) -> None:
    with pytest.raises(ValueError, match="is no condition"):
        parse(text)


def test_names() -> None:
    assert parse("major(a) != major(b)").names == {"a", "b"}
    assert parse("a < 2.0").names == {"a"}
    assert parse("unknown c").names == {"c"}
