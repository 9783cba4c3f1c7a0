"""The page as one HTML file: nothing is fetched, and without its script it still says all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tfenv.team.asking import in_short
from tfenv.webpage import embedded, style, templates

from .collect import Entry, Page, everywhere
from .gpus import by_capability, labels
from .words import ANSWERS, LEGEND, LIMITED, REFUSED, STANDINGS

_HERE = Path(__file__).resolve().parent


def to_html(page: Page) -> str:
    """The page's text; the same for the same page."""
    return (
        templates(_HERE)
        .get_template("page.html.j2")
        .render(
            page=page,
            data=embedded(data(page)),
            style=style(_HERE / "page.css"),
            script=(_HERE / "page.js").read_text("utf-8"),
            signs={"answers": ANSWERS, "standings": STANDINGS, "limited": LIMITED, "refused": REFUSED},
            legend=LEGEND,
            adds=in_short,
            is_entry=lambda one: isinstance(one, Entry),
            everywhere=everywhere,
            by_capability=by_capability,
            labels=labels,
        )
    )


def data(page: Page) -> dict[str, Any]:
    """What the script looks answers up in.

    Returns:
        ``drivers``: lower ends of the ranges. ``answers``: state, numbers of ``sentences``, and of
        those that are remedies.
        ``grids``: by GPU and driver, after *not said*, the number of the answer. ``cells``: the number
        of the grid, and what was proven of it: number of the GPU, proven or failed, sentence.
    """
    answers = page.answers
    sentences: dict[str, int] = {}

    def number(sentence: str) -> int:
        return sentences.setdefault(sentence, len(sentences))

    told = [[of.state, [*map(number, of.sentences)], [*map(number, of.remedies)]] for of in answers.kept]
    cells = [
        [
            answers.grid_of[entry.cell.name],
            [
                [gpu, "proven" if proof.verdict == "pass" else "failed", number(proof.sentence)]
                for gpu, proof in entry.proven
            ],
        ]
        for entry in (*page.entries, *page.own)
    ]
    return {
        "drivers": answers.drivers,
        "answers": told,
        "grids": answers.grids,
        "cells": cells,
        "sentences": list(sentences),
        "signs": {state: [of.colour, of.sign, of.words] for state, of in ANSWERS.items()},
    }
