"""Work ahead of what is asked for, and questions that are asked once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tfenv.parallel import ahead, once

SECONDS = 30


def test_what_is_asked_for_is_given_whatever_was_done_first() -> None:
    last = threading.Event()

    def work(n: int) -> int:
        if n == 0:
            assert last.wait(SECONDS), "the others are worked on meanwhile"
        if n == 1:
            last.set()
        return n * n

    with ahead(work, [0, 1]) as result:
        assert [result(n) for n in (0, 1)] == [0, 1]


def test_the_order_of_asking_is_free() -> None:
    with ahead(lambda n: n + 1, range(20)) as result:
        assert [result(n) for n in (7, 0, 19)] == [8, 1, 20]


def test_a_failure_is_raised_where_its_item_is_asked_for() -> None:
    def work(n: int) -> int:
        if n == 1:
            raise ValueError("one")
        return n

    with ahead(work, [0, 1, 2]) as result:
        assert result(0) == 0
        with pytest.raises(ValueError, match="one"):
            result(1)
        assert result(2) == 2


def test_one_item_is_worked_on_right_there_and_only_when_asked_for() -> None:
    where: list[threading.Thread] = []
    with ahead(lambda n: where.append(threading.current_thread()), [1]) as result:
        assert where == []
        result(1)
    assert where == [threading.current_thread()]
    with ahead(lambda n: n, []):
        pass


@pytest.mark.parametrize("reason", [KeyboardInterrupt, BrokenPipeError])
def test_what_has_not_begun_is_dropped_when_it_ends_early(
    monkeypatch: pytest.MonkeyPatch, reason: type[BaseException]
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # two at a time
    begun: list[int] = []
    go, waiting = threading.Event(), threading.Barrier(3)

    def work(n: int) -> None:
        begun.append(n)
        waiting.wait(SECONDS)
        go.wait(SECONDS)

    with pytest.raises(reason), ahead(work, range(100)):
        waiting.wait(SECONDS)
        raise reason
    go.set()
    for thread in threading.enumerate():
        if thread.name.startswith("tfenv-ahead"):
            thread.join(SECONDS)
    assert sorted(begun) == [0, 1]


def _counted(answer: Callable[..., Any]) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
    asked: list[tuple[Any, ...]] = []

    def work(*arguments: Any) -> Any:
        asked.append(arguments)
        return answer(*arguments)

    return once(work), asked


def test_the_same_question_is_asked_once_and_another_one_again() -> None:
    ask, asked = _counted(lambda *words: "-".join(words))
    assert [ask("a"), ask("a"), ask("a", "b"), ask()] == ["a", "a", "a-b", ""]
    assert asked == [("a",), ("a", "b"), ()]


def test_whoever_asks_meanwhile_waits_for_the_one_answer() -> None:
    started, go = threading.Event(), threading.Event()

    def slow(word: str) -> str:
        started.set()
        assert go.wait(SECONDS)
        return word

    ask, asked = _counted(slow)
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(ask("a"))) for _ in range(8)]
    threads[0].start()
    assert started.wait(SECONDS)
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(SECONDS)
    assert answers == ["a"] * 8 and asked == [("a",)]


def test_a_failure_is_an_answer_too() -> None:
    def fail(word: str) -> str:
        raise ValueError(word)

    ask, asked = _counted(fail)
    for _ in range(3):
        with pytest.raises(ValueError, match="a"):
            ask("a")
    assert asked == [("a",)]
