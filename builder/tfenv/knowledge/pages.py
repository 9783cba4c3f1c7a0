"""The troubleshooting pages, from the rules: HTML that is searched without a network, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tfenv.webpage import embedded, style, templates

from .layers import LAYERS
from .library import Library
from .rule import Rule
from .sentences import general

HTML, MARKDOWN = "troubleshooting.html", "troubleshooting.md"
_HERE = Path(__file__).resolve().parent / "page"
_HOLE = re.compile(r"\{\{|\}\}|\{(?:([a-z][a-z0-9_]*):)?([^{}]*)\}")
_CONFIDENCE = {"certain": "certain", "likely": "likely", "possible": "possible, other causes are too"}
_EFFECT = {"fails": "ends the program", "degrades": "goes on, slower or without the GPU", "none": "harmless"}


@dataclass(frozen=True)
class Entry:
    """A rule as it is shown: places in its sentences say what would stand there."""

    rule: Rule

    @property
    def title(self) -> str:
        """The cause in a few words, with a capital."""
        text = general(self.rule.title)
        return text[:1].upper() + text[1:]

    @property
    def cause(self) -> str:
        """The cause in full, without what only one text can tell."""
        return general(self.rule.cause)

    @property
    def remedy(self) -> str:
        """What to do."""
        return general(self.rule.remedy)

    @property
    def confidence(self) -> str:
        """How sure the cause is where the words fit, and what it does."""
        return f"{_CONFIDENCE[self.rule.confidence]}; {_EFFECT[self.rule.effect]}"

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The texts that it is found by, with a star for what differs; at most some."""
        shown = dict.fromkeys(_starred(p.text) for p in (*self.rule.all, *self.rule.any))
        return tuple(shown)[:6]

    @property
    def anchors(self) -> list[str]:
        """Texts, one of which stands in every line that it fits, to find it from a whole log."""
        return sorted({anchor for p in self.rule.patterns for anchor in p.anchors if len(anchor) >= 8})


@dataclass(frozen=True)
class Section:
    """The rules of one layer."""

    name: str
    about: str
    entries: Sequence[Entry]


def sections(rules: Iterable[Rule]) -> tuple[Section, ...]:
    """Layers from the ground up, then what is harmless."""
    kept = list(rules)
    told = [
        Section(layer, about, _entries(r for r in kept if r.layer == layer and not r.noise))
        for layer, about in LAYERS.items()
    ]
    noise = Section("harmless", "lines that everybody sees", _entries(r for r in kept if r.noise))
    return tuple(section for section in (*told, noise) if section.entries)


def texts(of: Library) -> Mapping[str, str]:
    """The files' texts by name; the same for the same rules."""
    return {HTML: to_html(of), MARKDOWN: to_markdown(of)}


def to_html(of: Library) -> str:
    """The page that is searched."""
    found = sections(of.rules)
    return (
        templates(_HERE)
        .get_template("page.html.j2")
        .render(
            sections=found,
            count=len(of.rules),
            anchors=embedded(
                {entry.rule.id: entry.anchors for section in found for entry in section.entries}
            ),
            style=style(_HERE / "page.css"),
            script=(_HERE / "page.js").read_text("utf-8"),
        )
    )


def to_markdown(of: Library) -> str:
    """The same for those who read files."""
    found = sections(of.rules)
    lines = [
        "# Troubleshooting",
        "",
        f"{len(of.rules)} failures of TensorFlow on GPUs, by the layer that the cause lies in. Paste the"
        " output into `tfenv explain -`, which finds the cause by the same rules, or search here.",
        "",
        *(f"- [{section.name}](#{section.name}): {section.about}" for section in found),
    ]
    for section in found:
        lines += ["", f"## {section.name}", "", f"{section.about[:1].upper()}{section.about[1:]}."]
        for entry in section.entries:
            lines += ["", f"### {_plain(entry.title)}", ""]
            lines += [f"`{entry.rule.name}` ({entry.confidence})", "", "```text"]
            lines += [*(entry.words or ("(by the versions that a text names)",)), "```", ""]
            lines += [_plain(entry.cause), "", f"**What to do.** {_plain(entry.remedy)}", ""]
            lines += [f"Known from: <{entry.rule.link}>"]
    return "\n".join(lines) + "\n"


def _entries(rules: Iterable[Rule]) -> tuple[Entry, ...]:
    return tuple(Entry(rule) for rule in sorted(rules, key=lambda rule: (rule.symptom, rule.title.lower())))


def _starred(pattern: str) -> str:
    """A pattern for people: a star for a value, the first of several texts."""

    def hole(found: re.Match[str]) -> str:
        if found.group(0) in ("{{", "}}"):
            return found.group(0)[0]
        return found.group(2).split("|")[0] if "|" in found.group(2) else "*"

    return _HOLE.sub(hole, pattern).removeprefix("^").removesuffix("$")


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)
