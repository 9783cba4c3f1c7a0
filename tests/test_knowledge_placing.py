"""The lines that hold a text: by the words in it, and all of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tfenv.knowledge.lines import Line, Text
from tfenv.knowledge.placing import places

PIECES = [
    "cuda",
    "cudnn",
    "_",
    "lib",
    "libcuda",
    " ",
    " ",
    "9",
    ".",
    "error",
    "err",
    "failed: ",
    "x",
    "\u0130",
    "-",
]
LINES = st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), max_size=30)


def text(lines: list[str]) -> Text:
    return Text(tuple(Line(number, line, line.lower()) for number, line in enumerate(lines, start=1)))


def test_a_word_within_a_text_is_looked_up_whole() -> None:
    found = places(["failed to load cuda now", "failed to load cudart now", "load"])
    assert found.of("to load cuda now") == [0]
    assert found.of("to load rocm now") == ()


def test_a_word_at_an_end_of_a_text_may_be_part_of_a_longer_one() -> None:
    found = places(["xcuda_error_no_devicex", "cuda error", "CUDA"])
    assert found.of("cuda_error") == [0]
    assert found.of("cuda") == [0, 1]
    assert found.of("rocm") == []


def test_where_no_word_tells_all_lines_are_read() -> None:
    assert places(["a b", "12 %"]).of("12 %") is None
    assert places([f"cuda{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(99)]).of("cuda") is None
    assert [line.number for line in text(["a b", "at 12 %"]).holding(("12 %",))] == [2]


@settings(max_examples=300, deadline=None)
@given(LINES, st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join), min_size=1))
def test_no_line_is_missed(lines: list[str], anchors: list[str]) -> None:
    wanted = tuple(anchor.lower() for anchor in anchors)
    found = [line.number for line in text(lines).holding(wanted)]
    assert found == [n for n, line in enumerate(lines, start=1) if any(a in line.lower() for a in wanted)]
