"""Ask many questions at once, each once, and keep apart what was not answered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tfenv.errors import NotReadyError, TfenvError
from tfenv.index import redact
from tfenv.outdated.model import Unasked

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

#: How many questions are under way at a time: quick, and polite to an index.
WORKERS = 8
#: After so many questions in vain a host is left alone, so that one that is silent costs no minutes.
PATIENCE = 3


@dataclass(frozen=True)
class Question(Generic[T]):
    """What is asked, of whom, and how: ``ask`` raises TfenvError or OSError where there is no answer."""

    what: str
    host: str
    ask: Callable[[], T]


@dataclass
class _Hosts:
    """Which hosts have been silent too often, and what they said last."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    failures: Counter[str] = field(default_factory=Counter)
    said: dict[str, str] = field(default_factory=dict)

    def given_up(self, host: str) -> str:
        with self.lock:
            return self.said[host] if self.failures[host] >= PATIENCE else ""

    def failed(self, host: str, why: str) -> None:
        with self.lock:
            self.failures[host] += 1
            self.said[host] = why


def ask_all(
    questions: Mapping[K, Question[T]], *, workers: int = WORKERS
) -> tuple[dict[K, T], tuple[Unasked, ...]]:
    """The answers by key, and what was not answered, in the order of the questions."""
    hosts = _Hosts()

    def one(question: Question[T]) -> tuple[bool, T | Unasked]:
        def unasked(why: str) -> tuple[bool, Unasked]:
            return False, Unasked(what=question.what, host=question.host, why=why)

        if why := hosts.given_up(question.host):
            return unasked(why)
        try:
            return True, question.ask()
        except (TfenvError, OSError) as error:
            why = redact(error.message if isinstance(error, TfenvError) else str(error))
            if isinstance(error, (NotReadyError, OSError)):
                hosts.failed(question.host, why)
            return unasked(why)

    answers: dict[K, T] = {}
    without: list[Unasked] = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for key, (answered, value) in zip(questions, pool.map(one, questions.values()), strict=True):
            if answered:
                answers[key] = value  # type: ignore[assignment]
            elif isinstance(value, Unasked):
                without.append(value)
    return answers, tuple(without)
