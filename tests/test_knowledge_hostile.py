"""Whatever is pasted: an answer, in time, and nothing that drives a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tfenv.knowledge import Diagnosis, explain, library
from tfenv.knowledge.reading import decode
from tfenv.knowledge.sorting import sort_of
from tfenv.knowledge.telling import as_data, as_text, in_short

EXAMPLES = [text for rule in library().rules for text in rule.examples]
#: Pieces that patterns begin with, mixed without sense.
PIECES = sorted({part for rule in library().rules for p in rule.patterns for part in p.anchors})
DRIVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
BIG = 1_000_000  # characters

ANY = st.text(st.characters(), max_size=400)
quick = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def safe(told: Diagnosis) -> None:
    for said in (as_text(told), in_short(told), *values(as_data(told))):
        assert not DRIVES.search(said), said
        said.encode("utf-8")  # no half of a surrogate pair


def values(data: object) -> list[str]:
    if isinstance(data, dict):
        return [text for value in data.values() for text in values(value)]
    if isinstance(data, list):
        return [text for value in data for text in values(value)]
    return [data] if isinstance(data, str) else []


@quick
@given(ANY)
def test_any_text(text: str) -> None:
    sort_of(text)
    safe(explain(text))


@quick
@given(st.binary(max_size=2000))
def test_any_bytes(data: bytes) -> None:
    safe(explain(decode(data)))


@quick
@given(st.lists(st.one_of(st.sampled_from(EXAMPLES), ANY), max_size=6), st.sampled_from("\n\r \x1b\x00"))
def test_examples_among_anything(parts: list[str], between: str) -> None:
    safe(explain(between.join(parts)))


@quick
@given(
    st.lists(
        st.one_of(st.sampled_from(PIECES), st.sampled_from(["1.2.3", " ", "'", ": ", "{", "x"])), max_size=40
    )
)
def test_pieces_of_patterns(parts: list[str]) -> None:
    safe(explain("".join(parts)))


@quick
@given(st.sampled_from(EXAMPLES), st.data())
def test_a_text_that_was_cut_off_is_never_a_fault(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    safe(explain(text[start : data.draw(st.integers(start, len(text)))]))


@quick
@given(st.sampled_from(EXAMPLES), st.text(st.characters(max_codepoint=0x9F), max_size=3))
def test_values_in_sentences_are_clean(text: str, bad: str) -> None:
    safe(explain(text.replace(" ", f" {bad}")))


HUGE = {
    "one line": "a" * BIG,
    "spaces": " " * BIG,
    "line breaks": "\n" * BIG,
    "carriage returns": "x\r" * (BIG // 2),
    "backspaces": "x\x08" * (BIG // 2),
    "escapes": "\x1b[" * (BIG // 2),
    "titles": "\x1b]0;" * (BIG // 4),
    "dots": "1." * (BIG // 2),
    "json": '{"log":' * (BIG // 7),
    "braces": "[" * BIG,
    "zeros": "\x00" * BIG,
    "surrogates": "\ud800" * BIG,
    "wide": "\U0001f600" * BIG,
    "growing": "\u0130" * BIG,  # longer in lower case
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_huge_texts(text: str) -> None:
    safe(explain(text))


@pytest.mark.parametrize("between", ["", " ", "\n"], ids=["glued", "spaced", "lines"])
def test_a_megabyte_of_each_beginning_never_hangs(between: str) -> None:
    step = max(1, len(PIECES) // 12)
    for piece in PIECES[::step]:
        safe(explain((piece + between) * (BIG // 8 // (len(piece) + 1))))


def test_every_error_at_once() -> None:
    text = "".join(f"{number} {text}\n" for number in range(100) for text in EXAMPLES)[:BIG]
    told = explain(text)
    safe(told)
    assert told.causes


def test_a_cause_among_a_long_training_is_found() -> None:
    bar = "".join(f"{step}/9000 [====>....] - ETA: 9s - loss: 0.{step}\r" for step in range(15_000))
    cause = "E cuda_dnn.cc:1] Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0."
    assert explain(bar).causes == ()
    assert [told.fit.rule.id for told in explain(f"{bar}\n{cause}\n{bar}").causes] == ["cudnn-minor-too-old"]
