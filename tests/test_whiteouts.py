"""What the marks of a layer hide, and what they leave."""

from __future__ import annotations

import pytest
from tfenv.whiteouts import hidden, is_mark


@pytest.mark.parametrize(
    ("mark", "gone", "stays"),
    [
        ("a/.wh.b", ("a/b", "a/b/c"), ("a", "a/bc", "b")),
        (".wh.a", ("a", "a/b"), ("ab", "b/a")),
        ("a/.wh..wh..opq", ("a/b", "a/b/c"), ("a", "ab", "b/a")),
        (".wh..wh..opq", ("a", "a/b"), ()),
        ("a/b", (), ("a", "a/b", "a/b/c")),
    ],
)
def test_a_mark_hides_what_it_names_and_nothing_else(
    mark: str, gone: tuple[str, ...], stays: tuple[str, ...]
) -> None:
    hides = hidden(["x", mark])
    assert all(map(hides.hides, gone)) and not any(map(hides.hides, stays))
    assert bool(hides) == bool(gone) == is_mark(mark)


def test_what_is_hidden_without_a_mark() -> None:
    hides = hidden(["d"], also=["d"])
    assert hides.hides("d/a") and not hides.hides("e")
