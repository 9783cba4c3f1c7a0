from __future__ import annotations

import json
import math

import pytest
from tfenv.eventlines import Lines, event_of, lines_in


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_pieces_become_lines(size: int) -> None:
    data = b"one\ntwo\n\nthree"
    lines = Lines()
    found = [line for at in range(0, len(data), size) for line in lines.feed(data[at : at + size])]
    assert [*found, lines.rest()] == [b"one", b"two", b"", b"three"] and lines.rest() == b""


def test_a_line_without_end_is_left_out_and_costs_nothing() -> None:
    lines = Lines(most=10)
    assert lines.feed(b"x" * 8) == lines.feed(b"y" * 8) == lines.feed(b"z" * 8) == []
    assert lines.feed(b"!\nnext\n") == [b"", b"next"]
    lines.feed(b"w" * 11)
    assert lines.rest() == b""


def test_lines_of_a_text() -> None:
    assert list(lines_in("\ufeffa\r\nb\x85c\n\nd")) == ["a", "b\x85c", "", "d"]


@pytest.mark.parametrize("line", ["", "x", "[1]", '"x"', "{}", '{"event": 5}', "[" * 100_000, "1" * 5000])
def test_no_event(line: str) -> None:
    assert event_of(line) is None


def test_an_event_can_be_written_again() -> None:
    big = "9" * 100
    line = f'{{"event": "\\ud800", "\\udfff": NaN, "b": [-Infinity, 1e999, {{"c": {big}}}], "d": -{big}}}'
    event = event_of(line)
    assert event == {"event": "?", "?": "nan", "b": ["-inf", "inf", {"c": "inf"}], "d": "-inf"}
    json.dumps(event, allow_nan=False, ensure_ascii=False).encode()
    kept = event_of(line, infinite=True)
    assert kept is not None and math.isnan(kept["?"]) and kept["b"][1] == kept["b"][2]["c"] == math.inf
    assert kept["d"] == -math.inf


def test_what_is_nested_deeper_than_anybody_means_it_is_no_event() -> None:
    def nested(depth: int) -> str:
        return json.dumps({"event": "x", "a": 1})[:-2] + "[" * depth + "1" + "]" * depth + "}"

    assert event_of(nested(32)) is not None and event_of(nested(33)) is None
