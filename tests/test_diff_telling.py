"""A difference as text, JSON and Markdown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from test_diff_sections import SIDE
from tfenv.diff.markdown import MOST_MARKDOWN, to_markdown
from tfenv.diff.model import Difference, Entry, Known, unknown
from tfenv.diff.sections import compare
from tfenv.diff.telling import summary, to_json, to_text


def told(**changes: Any) -> Difference:
    return compare(SIDE, replace(SIDE, name="b", digest="sha256:2", **changes))


def files(count: int) -> dict[str, Entry]:
    return {f"opt/x/f{n}": Entry("f", 0o644, "0:0", 1, "x") for n in range(count)}


def test_the_first_line_says_what_matters_most() -> None:
    found = told(stack=Known({**SIDE.stack.values, "cuDNN": "9.3"}), debian=Known({"libc6": "3"}))
    assert summary(found) == "cuDNN 8.9.4.25 -> 9.3; Debian packages: 1"
    assert summary(told()) == "the same in all that is known of both"
    assert summary(compare(SIDE, SIDE)) == "identical: the same digest"


def test_sameness_names_what_was_not_compared() -> None:
    assert summary(told(debian=unknown("no dpkg"))).endswith("; not compared: Debian packages")


def test_text_has_the_sections_that_differ_in_order() -> None:
    text = to_text(told(wheels=Known({"numpy": "2.0.0", "new": "1"}), stack=Known({"TensorFlow": "2.16.1"})))
    assert text.index("TensorFlow and CUDA") < text.index("Python packages (1 changed, 1 added, 1 removed)")
    assert "  ~ numpy    1.26.4 -> 2.0.0" in text
    assert "  + new      1" in text and "  - absl-py  2.1.0" in text
    assert "Labels" not in text


def test_text_says_what_is_unknown_and_calls_none_of_it_removed() -> None:
    text = to_text(told(debian=unknown("there is no list of dpkg"), entries=None))
    assert "? Debian packages: not known of b: there is no list of dpkg" in text
    assert "? Files: not known of b" in text
    assert "removed" not in text


def test_long_lists_are_cut_in_text_and_whole_when_asked() -> None:
    found = told(wheels=Known({f"p{n:03}": "1" for n in range(100)}))
    assert "... and 77 more (--full shows all)" in to_text(found)
    whole = to_text(found, full=True)
    assert "p099" in whole and "more (--full" not in whole


def test_files_are_grouped_in_text() -> None:
    entries = {
        **files(50),
        "etc/passwd": Entry("f", 0o644, "0:0", 1, "x"),
        "a/__pycache__/b.pyc": Entry("f", 0o644, "0:0", 1, "x"),
    }
    text = to_text(told(entries=entries))
    assert "opt/x: 50 added" in text
    assert "etc: 1 added (etc/passwd)" in text
    assert text.rstrip().splitlines()[-1].strip() == "noise (byte code, caches, logs): 1 added"


def test_json_is_whole_and_json() -> None:
    found = told(entries=files(3), debian=unknown("no dpkg"))
    data = json.loads(json.dumps(to_json(found)))
    assert data["differs"] and not data["identical"] and data["format"] == 1
    sections = {of["key"]: of for of in data["sections"]}
    assert len(sections["files"]["changes"]) == 4  # one is gone
    assert sections["debian"]["unknown"] and not sections["debian"]["differs"]
    assert data["sections"][0]["key"] == "stack"


def test_markdown_folds_long_lists_and_stays_small() -> None:
    text = to_markdown(told(entries=files(20_000), wheels=Known({f"p{n:05}" * 20: "1" for n in range(3000)})))
    assert "<details><summary>Files: 20000 added, 1 removed</summary>" in text
    assert text.count("<details>") == text.count("</details>")
    assert len(text) <= MOST_MARKDOWN


def test_markdown_leaves_out_the_last_sections_rather_than_grow() -> None:
    long = {f"{n}-" + "x" * 290: "y" * 300 for n in range(400)}
    found = told(wheels=Known(long), environment=Known(long), debian=Known(long), labels=Known(long))
    text = to_markdown(found)
    assert len(text) <= MOST_MARKDOWN
    assert "Left out because it is long" in text and "Labels" in text


def test_what_a_foreign_image_says_is_only_text() -> None:
    bad = "x\x1b[31m`|<img src=x onerror=alert(1)> @someone [a](b)\n| y"
    found = told(
        labels=Known({bad: bad}),
        environment=Known({"A": bad}),
        entries={"```\n" + bad: Entry("f", 0, "", 0, "")},
    )
    for text in (to_text(found, full=True), to_markdown(found)):
        assert "\x1b" not in text
    markdown = to_markdown(found)
    rows = [line for line in markdown.splitlines() if line.startswith("| `A`")]
    assert len(rows) == 1 and rows[0].replace("\\|", "").count("|") == 4
    assert markdown.count("```") == 2
    assert "`" not in rows[0].replace("| `", "").replace("` |", "")


def test_a_name_in_prose_is_escaped() -> None:
    found = compare(
        replace(SIDE, name="<b>a</b>", debian=unknown("<script>")), replace(SIDE, digest="sha256:2")
    )
    assert "<script>" not in to_markdown(found)
