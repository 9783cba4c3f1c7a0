"""Every rule fits its examples and leads there, and leaves its counterexamples alone."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tfenv.knowledge import explain, library
from tfenv.knowledge.layers import LAYERS
from tfenv.knowledge.library import FOLDER, SEEN
from tfenv.knowledge.rule import Rule
from tfenv.knowledge.telling import as_data, as_text

RULES = library().rules
EXAMPLES = [(rule, text) for rule in RULES for text in library().texts(rule.examples)]
OTHERS = [(rule, text) for rule in RULES for text in library().texts(rule.counterexamples)]


def name(value: object) -> str:
    return value.id if isinstance(value, Rule) else str(value)[:30]


@pytest.mark.parametrize(("rule", "text"), EXAMPLES, ids=name)
def test_example(rule: Rule, text: str) -> None:
    told = explain(text)
    leading = [cause.fit.rule.id for cause in told.causes][:1] or [fit.rule.id for fit in told.noise]
    follows = [fit.rule.id for cause in told.causes for fit in cause.follows]
    assert rule.id in leading or (rule.symptom and rule.id in follows)
    assert told.outcome == rule.outcome or rule.symptom
    assert as_text(told) and as_data(told)


@pytest.mark.parametrize(("rule", "text"), OTHERS, ids=name)
def test_counterexample(rule: Rule, text: str) -> None:
    told = explain(text)
    causes = [cause.fit.rule.id for cause in told.causes] + [fit.rule.id for fit in told.noise]
    follows = [fit.rule.id for cause in told.causes for fit in cause.follows]
    assert rule.id not in causes
    assert rule.symptom or rule.id not in follows


def test_the_field_is_covered() -> None:
    assert len(RULES) >= 250
    layers = Counter(rule.layer for rule in RULES)
    assert set(layers) == set(LAYERS) and min(layers.values()) >= 3
    assert sum(rule.noise for rule in RULES) >= 8


def test_places_in_sentences_are_filled() -> None:
    for rule, text in EXAMPLES:
        for cause in explain(text).causes:
            if cause.fit.rule is rule:
                told = f"{cause.fit.title} {cause.fit.cause} {cause.fit.remedy}"
                assert "?" not in re.sub(r"\?\S|why\?", "", told), told


def test_noise_says_that_it_is_harmless() -> None:
    for rule in RULES:
        if rule.noise:
            assert rule.outcome == "info" and "armless" in rule.title + rule.cause + rule.remedy


def test_symptoms_are_never_certain_but_of_their_words() -> None:
    for rule in RULES:
        if rule.symptom and rule.confidence == "certain":
            assert rule.code == "lock-conflict", rule.id


def test_no_rule_names_a_host_of_an_index() -> None:
    host = re.compile(r"(pypi|pythonhosted|debian|ubuntu|npmjs)\.(org|com|net)")
    for path in [SEEN, *FOLDER.glob("*.json")]:
        assert not host.search(path.read_text(encoding="utf-8")), path.name
