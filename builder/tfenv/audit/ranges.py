"""Bytes of a remote file on demand: HTTP range requests behind an ordinary read-and-seek file."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tfenv.errors import IntegrityError, NotReadyError, TfenvError
from tfenv.index import redact
from tfenv.transfer import TIMEOUT_SECONDS, StoppedError, arriving

if TYPE_CHECKING:
    import requests

_SMALL_BLOCK = 1 << 15
_LARGE_BLOCK = 1 << 23
# The directory of a wheel of 25 000 members has 3 MB; a file that wants more at once is not one.
_MOST_AT_ONCE = 1 << 24
_ATTEMPTS = 5
_RETRIED = (408, 425, 429, 500, 502, 503, 504)
_TOTAL = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class NoRangesError(TfenvError):
    """The server sends only whole files."""


class RangeFile(io.RawIOBase):
    """A remote file of known size.

    Args:
        size: bytes, as the index says; None asks the server.
        sleep: waits that many seconds between attempts.
        stop: set when reading has to end, because the user or another thread says so.

    Attributes:
        fetched: bytes received so far.

    Reading raises NoRangesError, StoppedError, NotReadyError without an answer, and IntegrityError when the
    server's file is another one than before or than the index says.
    """

    def __init__(
        self,
        url: str,
        size: int | None,
        session: requests.Session,
        *,
        sleep: Callable[[float], object] = time.sleep,
        stop: threading.Event | None = None,
    ) -> None:
        super().__init__()
        self.stop = stop or threading.Event()
        self.url, self.session, self.sleep = url, session, sleep
        self._block = _SMALL_BLOCK
        self.fetched = 0
        self._etag: str | None = None
        self._at = self._start = 0
        self._held = b""
        self._size = size
        if size is None:
            self._get(0, 1)
        self.size: int = self._size or 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As any file's."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if origin + offset < 0:
            raise OSError(22, "before the start of the file")
        self._at = origin + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes from here; b"" at the end."""
        left = max(0, self.size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted > _MOST_AT_ONCE:
            raise IntegrityError(
                f"{self._name()}: its directory claims {wanted} bytes",
                remedy="the file is damaged or is no wheel; compare it with another index",
            )
        offset = self._at - self._start
        if not 0 <= offset <= len(self._held) - wanted:
            self._fill(offset, wanted)
            offset = self._at - self._start
        self._at += wanted
        return self._held[offset : offset + wanted]

    def _fill(self, offset: int, wanted: int) -> None:
        """Fetch ahead: more and more while reading goes straight on, little after a jump."""
        onwards = bool(self._held) and 0 <= offset <= len(self._held)
        self._block = min(2 * self._block, _LARGE_BLOCK) if onwards else _SMALL_BLOCK
        # zipfile looks for the end of the file first: then what is before it comes along.
        near_end = not onwards and self.size - self._at < _SMALL_BLOCK
        start = max(0, self.size - _SMALL_BLOCK) if near_end else self._at
        rest = self._held[offset:] if onwards else b""
        missing = max(wanted + self._at - start, self._block) - len(rest)
        after = start + len(rest)
        self._held = rest + self._get(after, min(missing, self.size - after))
        self._start = start

    def _get(self, start: int, length: int) -> bytes:
        if length <= 0:
            return b""
        reason = "no answer"
        for attempt in range(_ATTEMPTS):
            if self.stop.is_set():
                raise StoppedError
            if attempt:
                self.sleep(0.5 * 2 ** (attempt - 1))
            data, reason = self._attempt(start, length)
            if data is not None:
                return data
        raise NotReadyError(
            redact(f"{self._name()} cannot be read: {reason}"),
            remedy="check the network, proxy and CA settings, then run the same command again: "
            "it goes on where it stopped",
        )

    def _attempt(self, start: int, length: int) -> tuple[bytes | None, str]:
        import requests

        # identity: ranges of a compressed transfer would be ranges of something else.
        headers = {"Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity"}
        try:
            with self.session.get(self.url, headers=headers, stream=True, timeout=TIMEOUT_SECONDS) as answer:
                if answer.status_code in _RETRIED:
                    return None, f"the server answers {answer.status_code}"
                if answer.status_code == 200:
                    raise NoRangesError(
                        f"{self._name()}: the server sends only whole files",
                        remedy="add --whole to read whole wheels (hundreds of megabytes each)",
                    )
                self._same(answer, start, length)
                data = bytearray()
                for chunk in arriving(answer, self.stop):
                    data += chunk
                    if len(data) > length:
                        break
        except (requests.exceptions.SSLError, requests.exceptions.ProxyError) as error:
            raise NotReadyError(
                redact(f"{self._name()} cannot be read: {error}"),
                remedy="check the proxy and CA settings (pip's and uv's own are used)",
            ) from error
        except requests.RequestException as error:
            return None, str(error)
        self.fetched += len(data)
        return (bytes(data), "") if len(data) == length else (None, f"{len(data)} of {length} bytes arrived")

    def _same(self, answer: requests.Response, start: int, length: int) -> None:
        """Refuse an answer that is not about the file that was there before."""
        if answer.status_code == 416 and self._size is not None:
            raise self._changed("it is shorter than the index says")
        if answer.status_code != 206:
            raise NotReadyError(
                f"{self._name()} cannot be read: the server answers {answer.status_code}",
                remedy="the index lists a file that its server does not give; try again later",
            )
        told = _TOTAL.fullmatch(answer.headers.get("Content-Range", ""))
        if not told or (int(told[1]), int(told[2])) != (start, start + length - 1):
            raise self._changed("the server answers another range than it was asked for")
        if self._size not in (None, int(told[3])):
            raise self._changed(f"it has {told[3]} bytes, expected {self._size}")
        self._size = int(told[3])
        etag = answer.headers.get("ETag")
        if self._etag not in (None, etag):
            raise self._changed("it was replaced between two requests")
        self._etag = etag

    def _changed(self, why: str) -> IntegrityError:
        return IntegrityError(
            f"{self._name()} is not the file that the index lists: {why}",
            remedy="a mirror or proxy alters files, or the file was replaced: try again later",
        )

    def _name(self) -> str:
        return self.url.rsplit("/", 1)[-1]
