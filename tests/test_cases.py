"""Real failures of people, as they were reported: what is said of each, and of their look-alikes.

The answers are given from the facts of tests/compat_facts.py, without some patch releases on purpose.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compat_facts import KNOWN
from ruamel.yaml import YAML
from tfenv.compat import known
from tfenv.compat.subject import Known
from tfenv.explaining import Answer, answer
from tfenv.lint import lint_dockerfile, lint_requirements, read_cells

FIXTURES = Path(__file__).parent / "fixtures"
CASES: list[dict[str, Any]] = json.loads((FIXTURES / "cases.json").read_text(encoding="utf-8"))
VARIATIONS: list[dict[str, Any]] = YAML(typ="safe").load(FIXTURES / "case_variations.yaml")
#: What is told in a log elsewhere is refused here: it is known before anything runs.
OUTCOMES = {"refuse": "refuse", "lint": "lint", "warn": "warn", "diagnose": "refuse"}


def ask(kind: str, content: str, world: Known = KNOWN) -> list[Answer]:
    if kind == "matrix":
        questions = list(read_cells(content))
    else:
        questions = [lint_requirements(content) if kind == "lock" else lint_dockerfile(content)]
    return [answer(query, world, None, findings) for query, findings in questions]


def codes(answers: list[Answer]) -> set[str]:
    return {finding.code for one in answers for finding in one.verdict.findings}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    expected = case["expected_verdict"]
    told = ask(case["repro_input"]["type"], case["repro_input"]["content"])
    own = [f for one in told for f in one.verdict.findings if f.code == expected["code"]]
    assert own, codes(told)
    assert own[0].severity == OUTCOMES[expected["outcome"]]
    text = json.dumps([one.as_dict() for one in told], ensure_ascii=False)
    assert [word for word in expected["must_mention"] if word not in text] == []
    assert [word for word in expected.get("must_not", ()) if word in text] == []


def test_all_cases_are_there() -> None:
    kinds = [case["repro_input"]["type"] for case in CASES]
    assert {kind: kinds.count(kind) for kind in kinds} == {"matrix": 12, "dockerfile": 10, "lock": 5}


def texts(of: str) -> list[tuple[str, str, str]]:
    return [(row["kind"], row["code"], text) for row in VARIATIONS for text in row[of]]


def test_every_case_has_variations_and_look_alikes() -> None:
    codes_of = {case["id"]: case["expected_verdict"]["code"] for case in CASES}
    assert {row["case"]: row["code"] for row in VARIATIONS} == codes_of
    assert all(row["found"] and row["look_alikes"] for row in VARIATIONS)


@pytest.mark.parametrize(("kind", "code", "content"), texts("found"))
def test_variation(kind: str, code: str, content: str) -> None:
    assert code in codes(ask(kind, content))


@pytest.mark.parametrize(("kind", "code", "content"), texts("look_alikes"))
def test_look_alike(kind: str, code: str, content: str) -> None:
    assert code not in codes(ask(kind, content))


# --- and from the facts that are committed ---------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["id"] != "C115"], ids=lambda case: case["id"]
)
def test_case_with_the_committed_facts(case: dict[str, Any]) -> None:
    expected = case["expected_verdict"]
    told = ask(case["repro_input"]["type"], case["repro_input"]["content"], known(KNOWN.today))
    assert expected["code"] in codes(told)
    text = json.dumps([one.as_dict() for one in told], ensure_ascii=False)
    assert [word for word in expected["must_mention"] if word not in text] == []


def test_the_patch_that_others_did_not_know_is_known() -> None:
    [case] = [case for case in CASES if case["id"] == "C115"]
    told = ask("matrix", case["repro_input"]["content"], known(KNOWN.today))
    assert "2.9.3" in known().releases
    assert "matrix-table-stale" not in codes(told)
