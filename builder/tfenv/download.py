"""Fetch files by hash into the store: in parallel, resuming, retrying, and never a wrong byte."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tfenv.errors import IntegrityError, NotReadyError
from tfenv.index import redact
from tfenv.store import Store, not_ready_when_unwritable
from tfenv.transfer import GoneError, Item, Job, Progress, UnreachableError, copy, get

if TYPE_CHECKING:
    import requests

_WORKERS = 4
_ATTEMPTS = 5


def download(
    items: Iterable[Item],
    store: Store,
    session: Callable[[], requests.Session],
    progress: Progress = lambda _name, _done, _total: None,
    *,
    workers: int = _WORKERS,
    sleep: Callable[[float], object] | None = None,
) -> tuple[Item, ...]:
    """Fetch what the store lacks; return the items that no server has any more.

    Args:
        session: makes a session; called once per thread.
        progress: called with (name, bytes so far, bytes in all), one call at a time.
        sleep: waits that many seconds between attempts.

    An interrupted file stays as tmp/<sha256>.part and is resumed by the next call.
    Raises IntegrityError where an item's URLs gave wrong bytes and none the right ones, NotReadyError
    where no server can be reached. An item is missing when its first URL answers 404 (or 410) and no
    other one has it.
    """
    todo = [i for i in _largest_first(items) if not store.has(i.sha256, i.size)]
    if not todo:
        return ()
    with not_ready_when_unwritable(store.root):
        store.tmp_dir.mkdir(parents=True, exist_ok=True)
    job = Job(store=store, session=session, progress=progress, sleep=sleep or time.sleep)
    if sleep is None:
        job.sleep = job.stop.wait  # wakes up when another thread fails
    waiting: queue.SimpleQueue[Item] = queue.SimpleQueue()
    for item in todo:
        waiting.put(item)
    results: queue.SimpleQueue[tuple[Item, BaseException | None]] = queue.SimpleQueue()
    threads = [
        # Daemons: a read that hangs must not keep an interrupted process alive.
        threading.Thread(target=_work, args=(job, waiting, results), daemon=True)
        for _ in range(min(workers, len(todo)))
    ]
    for thread in threads:
        thread.start()
    missing: list[Item] = []
    try:
        for _ in todo:
            item, error = results.get()
            if isinstance(error, GoneError):
                missing.append(item)
            elif error is not None:
                raise error
    finally:
        job.stop.set()
        for thread in threads:
            thread.join(timeout=2.0)
    return tuple(sorted(missing, key=lambda item: item.name))


def _largest_first(items: Iterable[Item]) -> list[Item]:
    """The big files bound the time, so they start first; the same content is fetched once."""
    unique = {item.sha256: item for item in items}
    return sorted(unique.values(), key=lambda item: (-item.size, item.name))


def _work(
    job: Job,
    waiting: queue.SimpleQueue[Item],
    results: queue.SimpleQueue[tuple[Item, BaseException | None]],
) -> None:
    session: requests.Session | None = None
    while not job.stop.is_set():
        try:
            item = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            session = session or job.session()
            _fetch(job, session, item)
        except GoneError as error:
            results.put((item, error))
        except BaseException as error:
            results.put((item, error))
            job.stop.set()  # after the reason is handed over: the others only say "stopped"
        else:
            results.put((item, None))


def _fetch(job: Job, session: requests.Session, item: Item) -> None:
    """Try the item's URLs in order until one has the right bytes; put them into the store."""
    failures: list[str] = []
    wrong: list[IntegrityError] = []
    first_is_gone = False
    for number, url in enumerate(item.urls):
        try:
            # A second place is a favour: without an answer from it the first one's counts.
            _fetch_from(job, session, item, url, _ATTEMPTS if number == 0 else 2)
        except GoneError:
            first_is_gone = first_is_gone or number == 0
        except UnreachableError as error:
            failures.append(str(error))
        except IntegrityError as error:
            wrong.append(error)
        else:
            job.report(item.name, item.size, item.size)
            return
    if wrong:
        raise wrong[0]
    if first_is_gone or not failures:
        raise GoneError
    raise NotReadyError(
        f"{item.name} cannot be fetched: " + "; ".join(failures),
        remedy="check the network, proxy and CA settings, then run the same command again: "
        "it goes on where it stopped",
    )


def _fetch_from(job: Job, session: requests.Session, item: Item, url: str, attempts: int) -> None:
    part = job.store.tmp_dir / f"{item.sha256}.part"
    while True:
        local = urlsplit(url).scheme == "file"
        # What an earlier run or another address left may be what is wrong: then this one is asked for all.
        resumed = not local and part.exists()
        if local:
            copy(url, part)
        else:
            get(job, session, item, url, part, attempts)
        try:
            _keep(job.store, item, part, url)
        except IntegrityError:
            if not resumed:
                raise
        else:
            return


def _keep(store: Store, item: Item, part: Path, url: str) -> None:
    try:
        size = part.stat().st_size
        if size != item.size:
            raise IntegrityError(f"size {size} bytes, expected {item.size}", remedy="fetch it again")
        store.add(part, item.sha256, name=item.name)
    except IntegrityError as error:
        part.unlink(missing_ok=True)
        detail = error.message.removeprefix(f"{item.name}: ")
        raise IntegrityError(
            f"{item.name} from {redact(url)} is not the locked file: {detail}",
            remedy="a mirror or proxy alters files, or the file was replaced under its name: "
            "try again, compare with another mirror, and only then lock anew",
        ) from error
