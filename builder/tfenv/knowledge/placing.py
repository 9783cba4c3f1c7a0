"""In which lines a text can stand: told by the words in it, so that a search need not read all lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

_WORD = re.compile(r"[a-z][a-z_]{2,}")
_FORMS = 64  # words that one at an end of a text may be part of; if more, to read the lines is quicker


@dataclass(frozen=True)
class Places:
    """For each word in some lines the places of the lines that hold it, in order, from 0."""

    of_word: Mapping[str, Sequence[int]]

    def of(self, text: str) -> Collection[int] | None:
        """The places of all lines that can hold a text in lower case, in order; None: no word tells."""
        found = list(_WORD.finditer(text))
        whole = [
            word.group()
            for word in found
            if word.start() > 0 and word.end() < len(text) and text[word.start() - 1] != "_"
        ]
        if whole:
            return min((self.of_word.get(word, ()) for word in whole), key=len)
        part = max((word.group() for word in found), key=len, default="")
        return self._with_part(part) if part else None

    def _with_part(self, part: str) -> Collection[int] | None:
        words, at = [], self._vocabulary.find(part)
        while at >= 0:
            start, end = self._vocabulary.rfind("\n", 0, at) + 1, self._vocabulary.find("\n", at)
            words.append(self._vocabulary[start:end])
            if len(words) > _FORMS:
                return None
            at = self._vocabulary.find(part, end)
        if len(words) == 1:
            return self.of_word[words[0]]
        return sorted({place for word in words for place in self.of_word[word]})

    @cached_property
    def _vocabulary(self) -> str:
        return "".join(f"{word}\n" for word in self.of_word)


def places(lines: Iterable[str]) -> Places:
    """Read the words of lines in lower case."""
    of_word: dict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(lines):
        for word in set(_WORD.findall(line)):
            of_word[word].append(place)
    return Places(dict(of_word))
