"""What was pasted becomes lines that can be compared."""

from __future__ import annotations

import io

import pytest
from tfenv.knowledge.reading import HEAD, LONGEST, TAIL, decode, read, take


def texts(text: str) -> list[str]:
    return [line.text for line in read(text).lines]


@pytest.mark.parametrize(
    ("raw", "bare"),
    [
        ("2024-05-02 10:11:12.131415: E cuda_driver.cc:1] no", "E cuda_driver.cc:1] no"),
        ("2024-05-02T10:11:12.131415Z no", "no"),
        ("2024-05-02T10:11:12+02:00 stderr F no", "no"),
        ("E0000 00:00:1729784402.123456      42 cuda.cc:1] no", "cuda.cc:1] no"),
        ("trainer-1  | no", "no"),
        ("#12 34.567 no", "no"),
        ("[1,0]<stderr>: no", "no"),
        ("[ 1203.123456] no", "no"),
        ("May  5 10:00:00 node7 kernel: no", "kernel: no"),
        ("> > no", "no"),
        ("\x1b[1;31mno\x1b[0m", "no"),
        ("\x1b]0;title\x07no", "no"),
        ("[31mno[0m", "no"),
        ("^[[31mno^[[0m", "no"),
        ("n\u200bo", "no"),
        ("\u202eno", "no"),
        ("it\u2019s  \u00a0no", "it's no"),
        ('{"log":"no\\n","stream":"stderr"}', "no"),
    ],
)
def test_what_stands_around_a_message_is_taken_off(raw: str, bare: str) -> None:
    assert texts(raw) == [bare]


def test_progress_bars_and_repeated_lines_are_one() -> None:
    bar = "".join(f"{step}/900 [==>.....] loss: 0.{step}\r" for step in range(900))
    told = read(f"{bar}\nError: no\nError: no\n")
    assert len(told.lines) < 250
    assert told.lines[-1].text == "Error: no" and told.lines[-1].times == 2


def test_a_line_keeps_its_number() -> None:
    assert [line.number for line in read("a\n\nb\r\nc").lines] == [1, 3, 4]


def test_lines_that_a_terminal_has_broken_are_put_together() -> None:
    message = "Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0. " * 5
    broken = "\n".join(message[at : at + 80] for at in range(0, len(message), 80))
    assert "8.0.5 but source was compiled with: 8.1.0." in texts(broken)[0]


def test_a_long_line_is_read_in_pieces_that_overlap() -> None:
    told = texts("x" * 1900 + " needle in the middle " + "y" * 5000)
    assert all(len(line) <= LONGEST for line in told)
    assert any("needle in the middle" in line for line in told)


def test_encodings() -> None:
    assert decode("n\u00f6".encode("utf-16")) == "n\u00f6"
    assert decode(b"n\xff") == "n\ufffd"
    assert decode(b"") == ""


def test_of_a_large_file_the_ends_are_read() -> None:
    told = take(io.BytesIO(b"first\n" + b"x\n" * ((HEAD + TAIL) // 2) + b"last\n"))
    assert told.startswith("first\n") and told.endswith("last\n") and "left out" in told
    assert take(io.BytesIO(b"short")) == "short"
