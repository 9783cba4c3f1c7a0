"""Bring what lies at one URL into a file: with retries, resuming what an interrupted transfer left."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tfenv.errors import NotReadyError
from tfenv.index import redact
from tfenv.store import Store, not_ready_when_unwritable

if TYPE_CHECKING:
    import requests

# name, bytes so far, bytes in all
Progress = Callable[[str, int, int], None]

TIMEOUT_SECONDS = (15.0, 60.0)  # to connect, between two reads
CHUNK = 1 << 18
_SLOWEST = 1 << 10  # bytes a second; what is slower is no answer
_ABSENT = (404, 410)
_RETRIED = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class Item:
    """One file to fetch: ``urls`` are tried in order; ``size`` in bytes."""

    name: str
    sha256: str
    size: int
    urls: tuple[str, ...]


class GoneError(Exception):
    """The server says that there is no such file."""


class UnreachableError(Exception):
    """No answer that could be used, after all retries."""


class StoppedError(Exception):
    """Another thread failed, or the user interrupted."""


@dataclass(kw_only=True)
class Job:
    """What the threads of one download share.

    Args:
        stop: set when they have to end. unreachable: hosts that do not answer.
    """

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


def copy(url: str, part: Path) -> None:
    """The same for a ``file:`` URL. Raises GoneError, or NotReadyError where it cannot be read."""
    path = Path(unquote(urlsplit(url).path))
    if path.exists() and not path.is_file():  # a device has no end
        raise NotReadyError(f"cannot copy {url}: it is no file", remedy="name a folder that holds the files")
    try:
        shutil.copyfile(path, part)
    except FileNotFoundError as error:
        raise GoneError from error
    except OSError as error:
        raise NotReadyError(
            f"cannot copy {url}: {error.strerror or error}",
            remedy="make the file readable, or take its folder out of pip's find-links",
        ) from error


def get(job: Job, session: requests.Session, item: Item, url: str, part: Path, attempts: int) -> None:
    """Download to ``part`` with retries; whatever arrived is kept and resumed."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    reason = "no answer"
    for attempt in range(attempts):
        if job.stop.is_set():
            raise StoppedError
        if host in job.unreachable:
            raise UnreachableError(f"{host} does not answer")
        if attempt:
            job.sleep(0.5 * 2 ** (attempt - 1))
        outcome = _attempt(job, session, item, url, part)
        if outcome is None:
            return
        reason = outcome
    if reason.startswith("no connection"):
        # The other files of an unreachable host need not wait for it again.
        job.unreachable.add(host)
    raise UnreachableError(f"{host}: {reason}")


def _attempt(job: Job, session: requests.Session, item: Item, url: str, part: Path) -> str | None:
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
        with session.get(url, headers=headers, stream=True, timeout=TIMEOUT_SECONDS) as answer:
            if answer.status_code in _ABSENT:
                raise GoneError
            if answer.status_code == 416:  # the part does not fit this file
                part.unlink(missing_ok=True)
                return "the server refused to resume"
            if answer.status_code in _RETRIED:
                return f"the server answers {answer.status_code}"
            if answer.status_code not in (200, 206):
                raise UnreachableError(f"{urlsplit(url).hostname} answers {answer.status_code}")
            resumed = answer.status_code == 206
            _write(job, item, answer, part, have if resumed else 0)
    except (requests.exceptions.SSLError, requests.exceptions.ProxyError) as error:
        raise UnreachableError(redact(f"{urlsplit(url).hostname}: {error}")) from error
    except (requests.ConnectionError, requests.Timeout) as error:
        return redact(f"no connection ({_short(error)})")
    except requests.exceptions.ChunkedEncodingError:
        return "the transfer was cut off"
    except requests.RequestException as error:  # a redirection without end, or to what is no web address
        raise UnreachableError(redact(f"{urlsplit(url).hostname}: {error}")) from error
    got = part.stat().st_size if part.exists() else 0
    return None if got >= item.size else f"the transfer ended after {got} of {item.size} bytes"


def _write(job: Job, item: Item, answer: requests.Response, part: Path, start: int) -> None:
    done = start
    with not_ready_when_unwritable(part.parent):
        file = part.open("ab" if start else "wb")
    with file:
        for chunk in arriving(answer, job.stop):
            with not_ready_when_unwritable(part.parent):
                file.write(chunk)
            done += len(chunk)
            if done < item.size:  # the end is reported once its hash is right
                job.report(item.name, done, item.size)
            elif done > item.size:  # no need to read on: it is not the file
                return


def arriving(answer: requests.Response, stop: threading.Event) -> Iterator[bytes]:
    """The pieces of an answer as they arrive, so that one from a slow server can be given up at once.

    Raises:
        StoppedError: ``stop`` is set. requests' own errors, as its iter_content.
    """
    import requests
    import urllib3

    # requests waits until a piece is full: an hour, where a server sends a byte a second.
    read = getattr(answer.raw, "read1", answer.raw.read)  # urllib3 1.26 has none
    began, got = time.monotonic(), 0
    try:
        while chunk := read(CHUNK, decode_content=True):
            if stop.is_set():
                raise StoppedError
            yield chunk
            got += len(chunk)
            if time.monotonic() - began > TIMEOUT_SECONDS[1] + got / _SLOWEST:
                raise requests.ReadTimeout(f"only {got} bytes came in {TIMEOUT_SECONDS[1]:.0f} seconds")
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.ConnectionError(error) from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.exceptions.ChunkedEncodingError(error) from error


def _short(error: BaseException) -> str:
    """The innermost reason; requests nests four of them."""
    text = str(error)
    return text.rsplit(": ", 1)[-1].strip("()'\" ") or type(error).__name__
