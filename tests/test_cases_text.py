"""Real failures of people, told from what they pasted; in other words and versions, and look-alikes."""

from __future__ import annotations

from typing import Any

import case_scores
import pytest
from ruamel.yaml import YAML
from tfenv.knowledge import explain

CASES = case_scores.read()
VARIATIONS: list[dict[str, Any]] = YAML(typ="safe").load(case_scores.FIXTURES / "text_case_variations.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_is_answered_from_its_text_alone(case: case_scores.Case) -> None:
    assert case_scores.faults(case, case_scores.tell(case["repro_input"]["content"])) == []


def test_score(capsys: pytest.CaptureFixture[str]) -> None:
    text, wrong = case_scores.table(CASES)
    with capsys.disabled():
        print(f"\n{text}")
    assert wrong == 0 and len(CASES) == 76


def causes(text: str) -> list[str]:
    told = explain(text)
    return [cause.fit.rule.name for cause in told.causes] + [fit.rule.name for fit in told.noise]


def texts(of: str) -> list[tuple[str, str]]:
    return [(row["code"], text) for row in VARIATIONS for text in row[of]]


def test_every_case_of_output_has_variations_and_look_alikes() -> None:
    varied = {row["code"] for row in VARIATIONS}
    asked = {case["expected_verdict"]["code"] for case in case_scores.read(case_scores.PUBLIC[1:])}
    assert asked <= varied
    assert all(row["found"] and row["look_alikes"] for row in VARIATIONS)


@pytest.mark.parametrize(("code", "text"), texts("found"))
def test_variation(code: str, text: str) -> None:
    assert causes(text)[:1] == [code]


@pytest.mark.parametrize(("code", "text"), texts("look_alikes"))
def test_look_alike(code: str, text: str) -> None:
    assert code not in causes(text)


@pytest.mark.parametrize("case", case_scores.read(case_scores.PUBLIC[1:]), ids=lambda case: case["id"])
@pytest.mark.parametrize(
    "around",
    [
        lambda line: f"2024-05-02 10:11:12.131415: {line}",
        lambda line: f"\x1b[31m{line}\x1b[0m\r",
        lambda line: f"trainer-1  | {line}",
        lambda line: f"#12 34.567 {line}",
        lambda line: f"> {line}   ",
        lambda line: line.upper(),
    ],
    ids=["time", "colour", "compose", "buildkit", "quoted", "upper"],
)
def test_case_as_pasted(case: case_scores.Case, around: Any) -> None:
    content = "\n".join(map(around, case["repro_input"]["content"].splitlines()))
    assert causes(content)[:1] == [case["expected_verdict"]["code"]]
