"""Fetch files by hash into the store: in parallel, resuming, retrying, and never a wrong byte."""

from __future__ import annotations

import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tfenv.errors import IntegrityError, NotReadyError
from tfenv.index import redact
from tfenv.store import Store, not_ready_when_unwritable

if TYPE_CHECKING:
    import requests

# name, bytes so far, bytes in all
Progress = Callable[[str, int, int], None]

_WORKERS = 4
_ATTEMPTS = 5
_TIMEOUT_SECONDS = (15.0, 60.0)  # to connect, between two reads
_CHUNK = 1 << 18
_ABSENT = (404, 410)
_RETRIED = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class Item:
    """One file to fetch: ``urls`` are tried in order; ``size`` in bytes."""

    name: str
    sha256: str
    size: int
    urls: tuple[str, ...]


class _GoneError(Exception):
    """The server says that there is no such file."""


class _UnreachableError(Exception):
    """No answer that could be used, after all retries."""


class _StoppedError(Exception):
    """Another thread failed, or the user interrupted."""


@dataclass(kw_only=True)
class _Job:
    store: Store
    session: Callable[[], requests.Session]
    progress: Progress
    sleep: Callable[[float], object]
    stop: threading.Event = field(default_factory=threading.Event)
    unreachable: set[str] = field(default_factory=set)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def report(self, name: str, done: int, total: int) -> None:
        """One thread at a time calls the caller's function."""
        with self.guard:
            self.progress(name, done, total)


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
    Raises IntegrityError for wrong bytes, NotReadyError where no server can be reached.
    An item is missing when its first URL answers 404 (or 410) and no other one has it.
    """
    todo = [i for i in _largest_first(items) if not store.has(i.sha256, i.size)]
    if not todo:
        return ()
    with not_ready_when_unwritable(store.root):
        store.tmp_dir.mkdir(parents=True, exist_ok=True)
    job = _Job(store=store, session=session, progress=progress, sleep=sleep or time.sleep)
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
            if isinstance(error, _GoneError):
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
    job: _Job,
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
        except _GoneError as error:
            results.put((item, error))
        except BaseException as error:
            results.put((item, error))
            job.stop.set()  # after the reason is handed over: the others only say "stopped"
        else:
            results.put((item, None))


def _fetch(job: _Job, session: requests.Session, item: Item) -> None:
    """Try the item's URLs in order and put it into the store."""
    failures: list[str] = []
    first_is_gone = False
    for number, url in enumerate(item.urls):
        part = job.store.tmp_dir / f"{item.sha256}.part"
        try:
            if urlsplit(url).scheme == "file":
                _copy(url, part)
            else:
                # A second place is a favour: without an answer from it the first one's counts.
                _get(job, session, item, url, part, _ATTEMPTS if number == 0 else 2)
        except _GoneError:
            first_is_gone = first_is_gone or number == 0
            continue
        except _UnreachableError as error:
            failures.append(str(error))
            continue
        _keep(job.store, item, part, url)
        job.report(item.name, item.size, item.size)
        return
    if first_is_gone or not failures:
        raise _GoneError
    raise NotReadyError(
        f"{item.name} cannot be fetched: " + "; ".join(failures),
        remedy="check the network, proxy and CA settings, then run the same command again: "
        "it goes on where it stopped",
    )


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


def _copy(url: str, part: Path) -> None:
    try:
        shutil.copyfile(unquote(urlsplit(url).path), part)
    except FileNotFoundError as error:
        raise _GoneError from error
    except OSError as error:
        raise NotReadyError(
            f"cannot copy {url}: {error.strerror or error}",
            remedy="make the file readable, or take its folder out of pip's find-links",
        ) from error


def _get(job: _Job, session: requests.Session, item: Item, url: str, part: Path, attempts: int) -> None:
    """Download to ``part`` with retries; whatever arrived is kept and resumed."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    reason = "no answer"
    for attempt in range(attempts):
        if job.stop.is_set():
            raise _StoppedError
        if host in job.unreachable:
            raise _UnreachableError(f"{host} does not answer")
        if attempt:
            job.sleep(0.5 * 2 ** (attempt - 1))
        outcome = _attempt(job, session, item, url, part)
        if outcome is None:
            return
        reason = outcome
    if reason.startswith("no connection"):
        # The other files of an unreachable host need not wait for it again.
        job.unreachable.add(host)
    raise _UnreachableError(f"{host}: {reason}")


def _attempt(job: _Job, session: requests.Session, item: Item, url: str, part: Path) -> str | None:
    """One request; None when the file is complete, else the reason to try again."""
    import requests

    have = part.stat().st_size if part.exists() else 0
    if have > item.size:
        part.unlink()
        have = 0
    if have == item.size and have:
        return None
    # identity: a compressed transfer could not be resumed, nor its length compared.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with session.get(url, headers=headers, stream=True, timeout=_TIMEOUT_SECONDS) as answer:
            if answer.status_code in _ABSENT:
                raise _GoneError
            if answer.status_code == 416:  # the part does not fit this file
                part.unlink(missing_ok=True)
                return "the server refused to resume"
            if answer.status_code in _RETRIED:
                return f"the server answers {answer.status_code}"
            if answer.status_code not in (200, 206):
                raise _UnreachableError(f"{urlsplit(url).hostname} answers {answer.status_code}")
            resumed = answer.status_code == 206
            _write(job, item, answer, part, have if resumed else 0)
    except (requests.exceptions.SSLError, requests.exceptions.ProxyError) as error:
        raise _UnreachableError(redact(f"{urlsplit(url).hostname}: {error}")) from error
    except (requests.ConnectionError, requests.Timeout) as error:
        return redact(f"no connection ({_short(error)})")
    except requests.exceptions.ChunkedEncodingError:
        return "the transfer was cut off"
    got = part.stat().st_size if part.exists() else 0
    return None if got >= item.size else f"the transfer ended after {got} of {item.size} bytes"


def _write(job: _Job, item: Item, answer: requests.Response, part: Path, start: int) -> None:
    done = start
    with not_ready_when_unwritable(part.parent):
        file = part.open("ab" if start else "wb")
    with file:
        for chunk in answer.iter_content(_CHUNK):
            if job.stop.is_set():
                raise _StoppedError
            with not_ready_when_unwritable(part.parent):
                file.write(chunk)
            done += len(chunk)
            if done < item.size:  # the end is reported once its hash is right
                job.report(item.name, done, item.size)
            elif done > item.size:  # no need to read on: it is not the file
                return


def _short(error: BaseException) -> str:
    """The innermost reason; requests nests four of them."""
    text = str(error)
    return text.rsplit(": ", 1)[-1].strip("()'\" ") or type(error).__name__


def measure(url: str, session: requests.Session) -> tuple[int, str]:
    """Size in bytes and sha256 of what lies at ``url``: reads all of it, keeps nothing."""
    import hashlib

    digest, size = hashlib.sha256(), 0
    if urlsplit(url).scheme == "file":
        with Path(unquote(urlsplit(url).path)).open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
        return size, digest.hexdigest()
    import requests

    try:
        with session.get(
            url, headers={"Accept-Encoding": "identity"}, stream=True, timeout=_TIMEOUT_SECONDS
        ) as answer:
            answer.raise_for_status()
            for chunk in answer.iter_content(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except requests.RequestException as error:
        raise NotReadyError(
            redact(f"cannot read {url}: {error}"),
            remedy="check the network, proxy and CA settings (pip's and uv's own are used)",
        ) from error
    return size, digest.hexdigest()


__all__: Sequence[str] = ("Item", "Progress", "download", "measure")
