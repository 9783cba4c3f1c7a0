"""The score over cases of people: is the right cause named, with the right words, from the pasted text alone?

``python tests/case_scores.py [CASES.json]...`` prints it by kind. A case is right where the leading cause has
the code and the outcome that are expected, all of ``must_mention`` is said and nothing of ``must_not``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_facts import KNOWN
from tfenv.compat.subject import Known
from tfenv.explaining import answer
from tfenv.knowledge import explain
from tfenv.knowledge.sorting import sort_of
from tfenv.knowledge.telling import as_data
from tfenv.lint import lint_dockerfile, lint_requirements, read_cells

FIXTURES = Path(__file__).parent / "fixtures"
PUBLIC = (FIXTURES / "cases.json", FIXTURES / "text_cases.json")
#: What is told in a log elsewhere is refused in a file: it is known before anything runs.
OUTCOMES = {"refuse": "refuse", "lint": "lint", "warn": "warn", "diagnose": "refuse"}

Case = dict[str, Any]


@dataclass(frozen=True)
class Told:
    """What is said of a text: outcomes by code, the leading code ("" in a file: each finding counts)."""

    outcomes: dict[str, str]
    leading: str
    text: str


def read(paths: Iterable[Path] = PUBLIC) -> list[Case]:
    return [case for path in paths for case in json.loads(path.read_text(encoding="utf-8"))]


def tell(content: str, world: Known = KNOWN) -> Told:
    """What `tfenv explain -` says of a text, whatever it is."""
    sort = sort_of(content)
    if sort == "output":
        data = as_data(explain(content))
        found = [(cause["code"], cause["outcome"]) for cause in data["causes"]]
        found += [(noise["code"], data["outcome"]) for noise in data["noise"]]
        leading = found[0][0] if found else ""
        return Told(dict(reversed(found)), leading, json.dumps(data, ensure_ascii=False))
    if sort == "cells":
        questions = list(read_cells(content))
    else:
        questions = [(lint_dockerfile if sort == "dockerfile" else lint_requirements)(content)]
    answers = [answer(query, world, None, findings) for query, findings in questions]
    codes = {f.code: f.severity for one in answers for f in one.verdict.findings}
    return Told(dict(codes), "", json.dumps([one.as_dict() for one in answers], ensure_ascii=False))


def faults(case: Case, told: Told) -> list[str]:
    """What is wrong with an answer; empty for a right one."""
    expected = case["expected_verdict"]
    wrong = []
    if told.leading not in ("", expected["code"]) or expected["code"] not in told.outcomes:
        wrong.append(f"code {told.leading or sorted(told.outcomes)} in place of {expected['code']}")
    outcome = told.outcomes.get(expected["code"], "")
    if outcome not in (expected["outcome"], OUTCOMES.get(expected["outcome"]) if not told.leading else None):
        wrong.append(f"outcome {outcome!r} in place of {expected['outcome']}")
    wrong += [f"{word!r} is not said" for word in expected["must_mention"] if word not in told.text]
    wrong += [f"{word!r} is said" for word in expected.get("must_not", ()) if word in told.text]
    return wrong


def table(cases: Iterable[Case]) -> tuple[str, int]:
    """The score by kind as text, and how many are wrong."""
    rights: dict[str, list[bool]] = {}
    lines = []
    for case in cases:
        wrong = faults(case, tell(case["repro_input"]["content"]))
        rights.setdefault(case["kind"], []).append(not wrong)
        lines += [f"  {case['id']}: {'; '.join(wrong)}"] * bool(wrong)
    scores = [f"{kind:<20} {sum(right):>3} of {len(right)}" for kind, right in sorted(rights.items())]
    every = [one for right in rights.values() for one in right]
    return "\n".join([*scores, f"{'all':<20} {sum(every):>3} of {len(every)}", *lines]), every.count(False)


if __name__ == "__main__":
    text, wrong = table(read(map(Path, sys.argv[1:])) if sys.argv[1:] else read())
    print(text)
    sys.exit(bool(wrong))
