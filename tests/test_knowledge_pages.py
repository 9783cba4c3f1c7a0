"""The troubleshooting pages: every rule is on them, nothing is fetched, and drift is told."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tfenv.cli import run
from tfenv.knowledge import library
from tfenv.knowledge.pages import HTML, MARKDOWN, texts
from tfenv.knowledge.sentences import general

PAGES = texts(library())


class Reader(HTMLParser):
    """Ids of details, all text, and names of tags."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.add(tag)
        if tag == "details":
            self.rules.append(named["data-rule"] or "")
        self.addresses += [value for key in ("src", "href") if (value := named.get(key))]


def test_every_rule_is_there_once() -> None:
    reader = Reader()
    reader.feed(PAGES[HTML])
    assert sorted(reader.rules) == sorted(rule.id for rule in library().rules)
    for rule in library().rules:
        assert f"`{rule.name}`" in PAGES[MARKDOWN]


def test_the_page_fetches_nothing() -> None:
    reader = Reader()
    reader.feed(PAGES[HTML])
    assert reader.tags.isdisjoint({"img", "iframe", "object", "embed"})
    assert all(a.startswith(("https://", "#", "data:,")) for a in reader.addresses)
    assert "default-src 'none'" in PAGES[HTML]


def test_anchors_cannot_end_their_script() -> None:
    [embedded] = re.findall(r'id="anchors">(.*?)</script>', PAGES[HTML], re.DOTALL)
    assert "<" not in embedded
    assert set(json.loads(embedded)) == {rule.id for rule in library().rules}


def test_the_same_rules_give_the_same_pages() -> None:
    assert texts(library()) == PAGES


def test_sentences_for_any_text() -> None:
    assert general("It is {a}[[ of {b}]], {c_d}.") == "It is <a>, <c d>."
    assert general("capabilities=[['gpu']]") == "capabilities=[['gpu']]"


def test_the_command_writes_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["troubleshooting", "--output", str(tmp_path)]
    assert run([*asked, "--check"]) == 1
    assert "type: tfenv troubleshooting" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert run(asked) == 0
    assert {path.name for path in tmp_path.iterdir()} == {HTML, MARKDOWN}
    assert run([*asked, "--check"]) == 0
    (tmp_path / MARKDOWN).write_text("old")
    assert run([*asked, "--check"]) == 1
