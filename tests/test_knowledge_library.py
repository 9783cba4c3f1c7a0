"""The loader says what is wrong with a rule, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tfenv.knowledge import explain, load
from tfenv.knowledge.rule import RuleError
from tfenv.knowledge.sentences import fill

RULE: dict[str, Any] = {
    "id": "coffee-empty",
    "layer": "hardware",
    "title": "no coffee",
    "any": ["coffee machine {name:word} is empty"],
    "cause": "The machine {name} has no beans.",
    "remedy": "Fill it.",
    "source": "team/kitchen#1",
    "confidence": "certain",
    "examples": ["coffee machine K2 is empty"],
    "counterexamples": ["coffee machine K2 is full"],
}


def write(folder: Path, *rules: dict[str, Any]) -> Path:
    (folder / "own.json").write_text(json.dumps(list(rules)), encoding="utf-8")
    return folder


def test_a_rule_of_ones_own_needs_no_code(tmp_path: Path) -> None:
    rules = load(write(tmp_path, RULE))
    [cause] = explain("Coffee machine K2 is EMPTY", rules=rules).causes
    assert cause.fit.cause == "The machine K2 has no beans."
    assert cause.fit.rule.link == "https://github.com/team/kitchen/issues/1"


def test_one_file_may_be_one_rule(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(RULE), encoding="utf-8")
    assert [rule.id for rule in load(tmp_path).rules] == ["coffee-empty"]


def test_a_folder_comes_beside_the_own(tmp_path: Path) -> None:
    from tfenv.knowledge.library import FOLDER

    assert load(FOLDER, write(tmp_path, RULE)).get("coffee-empty").title == "no coffee"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"color": "red"}, "unknown key color"),
        ({"remedy": ""}, "missing key remedy"),
        ({"examples": []}, "missing key examples"),
        ({"counterexamples": []}, "missing key counterexamples"),
        ({"any": "text"}, "'any' is a list"),
        ({"any": [1]}, "'any' is a list"),
        ({"any": ["{a:word}{b:word}"]}, "separator"),
        ({"any": []}, "'any' is a list"),
        ({"when": ["a =< b"]}, "is no condition"),
        ({"when": ["beans < 3"]}, "beans, which nothing gives"),
        ({"cause": "No {beans}."}, "nothing gives a value for beans"),
        ({"any": ["coffee {name:word}", "no beans"]}, "name may be unknown"),
        ({"cause": "TensorFlow {tensorflow}"}, "tensorflow may be unknown"),
        ({"layer": "kitchen"}, "'layer' is one of"),
        ({"confidence": "sure"}, "'confidence' is one of"),
        ({"effect": "bad"}, "'effect' is one of"),
        ({"outcome": "bad"}, "'outcome' is one of"),
        ({"source": "somebody said so"}, "'source' is an https address"),
        ({"symptom": "yes"}, "true or false"),
        ({"symptom": True}, "a symptom needs topics"),
        ({"id": "Coffee Empty"}, "small letters"),
        ({"explains": ["nothing-else"]}, "no other rule nothing-else"),
        ({"over": ["coffee-empty"]}, "no other rule coffee-empty"),
        ({"counterexamples": ["@nothing-else"]}, "no other rule nothing-else"),
        ({"title": 3}, "'title' is a text"),
    ],
)
def test_refused(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    with pytest.raises(RuleError, match=why):
        load(write(tmp_path, {**RULE, **change}))


def test_a_rule_that_looks_for_nothing_is_refused(tmp_path: Path) -> None:
    bare = {key: value for key, value in RULE.items() if key != "any"}
    with pytest.raises(RuleError, match="looks for nothing"):
        load(write(tmp_path, {**bare, "cause": "None."}))


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"own\.json: coffee-empty: there is another rule"):
        load(write(tmp_path, RULE, RULE))


@pytest.mark.parametrize("text", ["[", "[1]", '[{"id": 1}]', "null", "[" * 100_000])
def test_what_is_no_list_of_rules_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "own.json").write_text(text, encoding="utf-8")
    with pytest.raises(RuleError):
        load(tmp_path)


def test_sentences_leave_out_what_is_not_known() -> None:
    assert fill("It is {a}[[ of {b}]].", {"a": "1"}) == "It is 1."
    assert fill("It is {a}[[ of {b}]].", {"a": "1", "b": "2"}) == "It is 1 of 2."
    assert fill("capabilities=[['gpu']]", {}) == "capabilities=[['gpu']]"
