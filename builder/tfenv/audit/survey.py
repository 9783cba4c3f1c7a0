"""Read many wheels of an index: a few at once, each once ever, and go on after one that cannot be read."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from tfenv.audit.listing import IndexFile
from tfenv.audit.ranges import NoRangesError, RangeFile
from tfenv.audit.trees import Tree, ZipTree
from tfenv.errors import IntegrityError, TfenvError
from tfenv.memo import Memo, hash_of

if TYPE_CHECKING:
    import requests


_MOST = 1 << 33  # bytes of a wheel


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A way to read a TensorFlow: its name, a version that changes with its results, and what it does.

    Args:
        large: whether it reads libraries of a gigabyte.
    """

    name: str
    version: int
    read: Callable[[Tree], dict[str, Any]]
    large: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one wheel.

    Args:
        found: what was read, or None with the ``error``.
        fetched: bytes that reading it costs; now: whether they were fetched in this run.
    """

    wheel: IndexFile
    found: dict[str, Any] | None
    fetched: int = 0
    now: bool = False
    error: TfenvError | None = None


@dataclass(frozen=True, kw_only=True)
class Surveyor:
    """How wheels are reached.

    Args:
        memo: what earlier runs read, by the wheel's hash.
        session: makes a session; called once per thread.
        scratch: folder for what is unpacked meanwhile.
        whole: read whole wheels where the server has no ranges.
        workers: how many wheels are read at once; large: how many whose libraries are read, because each
            takes a processor and a gigabyte of disk.
        stop: set when reading has to end.
    """

    memo: Memo
    session: Callable[[], requests.Session]
    scratch: Path
    whole: bool = False
    workers: int = 8
    large: int = 2
    stop: threading.Event = field(default_factory=threading.Event)

    def survey(self, wheels: Iterable[IndexFile], reading: Reading) -> Iterator[Outcome]:
        """The outcomes as they come; what was read is kept even if the caller stops early."""
        local = threading.local()

        def one(wheel: IndexFile) -> Outcome:
            if not hasattr(local, "session"):
                local.session = self.session()
            return self._one(wheel, reading, local.session)

        todo = []
        for wheel in wheels:
            known = self.known(wheel, reading)
            if known:
                yield known
            else:
                todo.append(wheel)
        pool = ThreadPoolExecutor(max_workers=self.large if reading.large else self.workers)
        try:
            futures: list[Future[Outcome]] = [pool.submit(one, wheel) for wheel in todo]
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            self.stop.set()  # what is being read is given up at its next request
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def known(self, wheel: IndexFile, reading: Reading) -> Outcome | None:
        """What an earlier run read of a wheel."""
        kept = self.memo.get(_key(wheel, reading)) if wheel.sha256 else None
        if kept is None:
            return None
        return Outcome(wheel=wheel, found=kept["found"], fetched=kept["fetched"])

    def _one(self, wheel: IndexFile, reading: Reading, session: requests.Session) -> Outcome:
        try:
            found, fetched = self._read(wheel, reading, session)
        except TfenvError as error:
            return Outcome(wheel=wheel, found=None, error=error, now=True)
        if wheel.sha256:
            self.memo.put(_key(wheel, reading), {"found": found, "fetched": fetched})
        return Outcome(wheel=wheel, found=found, fetched=fetched, now=True)

    def _read(
        self, wheel: IndexFile, reading: Reading, session: requests.Session
    ) -> tuple[dict[str, Any], int]:
        try:
            if urlsplit(wheel.url).scheme == "file":
                with Path(unquote(urlsplit(wheel.url).path)).open("rb") as local:
                    return reading.read(ZipTree(local, wheel.filename, self.scratch)), 0
            with RangeFile(wheel.url, wheel.size, session, sleep=self.stop.wait, stop=self.stop) as remote:
                tree = ZipTree(cast("IO[bytes]", remote), wheel.filename, self.scratch)
                return reading.read(tree), remote.fetched
        except NoRangesError:
            if not self.whole:
                raise
        with self._downloaded(wheel, session) as path, path.open("rb") as file:
            return reading.read(ZipTree(file, wheel.filename, self.scratch)), path.stat().st_size

    @contextmanager
    def _downloaded(self, wheel: IndexFile, session: requests.Session) -> Iterator[Path]:
        """The whole wheel, proven by its hash, for as long as it is read."""
        from tfenv.store import Store
        from tfenv.transfer import GoneError, Item, Job, UnreachableError, get

        # Both are the index's word: the one becomes a file's name, the other the end of a download.
        if not 0 <= (wheel.size or -1) <= _MOST or not re.fullmatch("[0-9a-f]{64}", wheel.sha256):
            raise IntegrityError(
                f"{wheel.filename}: the index tells no size or no sha256 of it",
                remedy="use an index that does",
            )
        part = self.scratch / f"{wheel.sha256}.part"
        item = Item(name=wheel.filename, sha256=wheel.sha256, size=wheel.size or 0, urls=(wheel.url,))
        job = Job(
            store=Store(self.scratch),
            session=self.session,
            progress=lambda *_: None,
            sleep=self.stop.wait,
            stop=self.stop,
        )
        try:
            get(job, session, item, wheel.url, part, 5)
        except (GoneError, UnreachableError) as error:
            from tfenv.errors import NotReadyError

            raise NotReadyError(
                f"{wheel.filename} cannot be read: {error or 'the server has no such file'}",
                remedy="check the network, then run the same command again",
            ) from error
        from tfenv.store import hash_file

        try:
            if hash_file(part) != wheel.sha256:
                raise IntegrityError(
                    f"{wheel.filename} is not the file that the index lists: its sha256 differs",
                    remedy="a mirror or proxy alters files: try another one",
                )
            yield part
        finally:
            part.unlink(missing_ok=True)


def _key(wheel: IndexFile, reading: Reading) -> str:
    return hash_of(b"audit", reading.name.encode(), str(reading.version).encode(), wheel.sha256.encode())
