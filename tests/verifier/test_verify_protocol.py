from __future__ import annotations

import json
from typing import Any

import pytest
from tfenv_verify.protocol import Report, emit, outcome, shorten, verdict

PASSED = outcome("a", "pass")
FAILED = outcome("b", "fail")
NO_GPU = outcome("c", "not-run", reason="no GPU")
ONE_GPU = outcome("d", "not-run", reason="one GPU")
OTHER = outcome("e", "not-run", reason="one GPU")  # accepted of d, not of e
SILENT = outcome("d", "not-run")


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([PASSED], "pass"),
        ([PASSED, ONE_GPU], "pass"),
        ([PASSED, NO_GPU], "unverified"),
        ([PASSED, OTHER], "unverified"),
        ([PASSED, SILENT], "unverified"),
        ([PASSED, NO_GPU, FAILED], "fail"),
        ([FAILED], "fail"),
        ([NO_GPU], "unverified"),
        ([ONE_GPU], "unverified"),
        ([], "unverified"),
    ],
)
def test_verdict_fails_closed(outcomes: list[dict[str, Any]], expected: str) -> None:
    assert verdict(outcomes, {"d": ["one GPU"]}) == expected


def test_only_errors_fail_a_report() -> None:
    report = Report()
    report.info("i")
    report.warning("w", "seen", "do")
    assert report.status == "pass"
    report.error("e")
    assert report.status == "fail"
    assert [f["severity"] for f in report.findings] == ["info", "warning", "error"]
    assert report.findings[1] == {
        "severity": "warning",
        "message": "w",
        "evidence": "seen",
        "remedy": "do",
    }


def test_reason_is_there_for_not_run_only() -> None:
    assert NO_GPU["reason"] == "no GPU"
    assert "reason" not in PASSED


def test_emit_writes_one_line_even_for_text_with_newlines(capsys: Any) -> None:
    emit({"event": "x", "text": "a\nb"})
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"event": "x", "text": "a\nb"}


def test_shorten_says_how_many_were_left_out() -> None:
    assert shorten("abc", limit=3) == "a\nb\nc"
    assert shorten("abcd", limit=3) == "a\nb\nc\n... and 1 more"
