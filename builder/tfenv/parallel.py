"""Work on many items ahead of the one that is asked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


def once(work: Callable[..., _T]) -> Callable[..., _T]:
    """``work``, done once for the same arguments; whoever asks meanwhile waits for the answer.

    A failure is an answer too.
    """
    answers: dict[tuple[Any, ...], Future[_T]] = {}
    guard = threading.Lock()

    def asked(*arguments: Any) -> _T:
        with guard:
            first = arguments not in answers
            answer = answers.setdefault(arguments, Future())
        if first:
            try:
                answer.set_result(work(*arguments))
            except BaseException as error:
                answer.set_exception(error)
                raise
        return answer.result()

    return asked


@contextmanager
def ahead(work: Callable[[_K], _T], items: Iterable[_K]) -> Iterator[Callable[[_K], _T]]:
    """Start ``work`` on all items, a few at a time and in order; give what waits for one of them.

    A failure is raised where its own item is asked for. One item is worked on right there.
    Work that has not begun is dropped at the end of the block, also after Ctrl-C.
    """
    items = tuple(items)
    if len(items) < 2:
        yield work
        return
    pool = ThreadPoolExecutor(2 * (os.cpu_count() or 1), thread_name_prefix="tfenv-ahead")
    futures = {item: pool.submit(work, item) for item in items}
    try:
        yield lambda item: futures[item].result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
