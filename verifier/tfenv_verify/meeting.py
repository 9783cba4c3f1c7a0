"""Workers on several hosts or containers meet: one listens, the others come; JSON lines between them."""

from __future__ import annotations

import json
import select
import socket
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, Sequence

LINE_MAX = 4 << 20  # bytes
_AGAIN_SECONDS = 0.5
_CHUNK = 1 << 16


class LostError(Exception):
    """The other one is gone, or does not answer in time; the message says which."""


class BusyError(Exception):
    """This worker cannot listen at its own address; the message says why."""


class Line:
    """A connection to another worker."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._come = b""  # and not yet taken

    def send(self, said: Mapping[str, Any]) -> None:
        """Say something.

        Raises:
            LostError: the connection is gone.
        """
        try:
            self._connection.sendall(json.dumps(said).encode("utf-8") + b"\n")
        except OSError as error:
            raise LostError(f"went away: {error}") from error

    def receive(self, seconds: float) -> dict[str, Any]:
        """What the other one says next.

        Raises:
            LostError: it says nothing in time, nothing any more, or nothing that can be read.
        """
        until = time.monotonic() + seconds
        while b"\n" not in self._come:
            if not self._more(max(0.1, until - time.monotonic())):
                raise LostError(f"said nothing for {seconds:.0f} s")
        line, _, self._come = self._come.partition(b"\n")
        return _read(line)

    def heard(self) -> dict[str, Any] | None:
        """What the other one has said already, and is still to be received; None for nothing yet.

        Raises:
            LostError: it is gone.
        """
        while b"\n" not in self._come and self._more(0.0):
            pass
        line, end, _ = self._come.partition(b"\n")
        return _read(line) if end else None

    def _more(self, seconds: float) -> bool:
        """Take what comes within so many seconds; False if nothing does."""
        ready, _, _ = select.select([self._connection], [], [], seconds)
        if not ready:
            return False
        try:
            chunk = self._connection.recv(_CHUNK)
        except OSError as error:
            raise LostError(f"went away: {error}") from error
        if not chunk:
            raise LostError("went away: its process or its container has ended")
        self._come += chunk
        if len(self._come) > LINE_MAX:
            raise LostError(f"said more than {LINE_MAX} bytes at once")
        return True

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def _read(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line.decode("utf-8"))
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise LostError(f"said something that is not understood: {line[:100]!r}")
    return said


def split(address: str) -> tuple[str, int]:
    """Host and port of ``host:port``.

    Raises:
        ValueError: it is not written so.
    """
    host, colon, port = address.rpartition(":")
    if not host or not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{address!r} is no host:port")
    return host, int(port)


@contextmanager
def hold(
    cluster: Sequence[str], seconds: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[dict[int, tuple[Line, dict[str, Any]]]]:
    """Listen as worker 0 until all others have come; gives the line to each, and what it said first.

    Those that have not come after ``seconds`` are not in it. What comes and names no worker of this
    cluster is sent away.

    Raises:
        BusyError: nobody can listen there.
    """
    host, port = split(cluster[0])
    came: dict[int, tuple[Line, dict[str, Any]]] = {}
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # In a container the name is that of its network, where all may come.
            loopback = host == "localhost" or host.startswith("127.")
            try:
                listening.bind((host if loopback else "", port))
            except OSError as error:
                raise BusyError(f"worker 0 cannot listen at {cluster[0]}: {error}") from error
            listening.listen(16)
            until = clock() + seconds
            while len(came) < len(cluster) - 1 and clock() < until:
                listening.settimeout(max(0.1, until - clock()))
                try:
                    connection, _ = listening.accept()
                except socket.timeout:
                    break
                line = Line(connection)
                index = _welcome(line, cluster, came)
                if index is None:
                    line.close()
        yield came
    finally:
        for line, _ in came.values():
            line.close()


def _welcome(line: Line, cluster: Sequence[str], came: dict[int, tuple[Line, dict[str, Any]]]) -> int | None:
    try:
        said = line.receive(10.0)
    except LostError:
        return None
    index = said.get("worker")
    known = isinstance(index, int) and 0 < index < len(cluster) and index not in came
    if not known or said.get("cluster") != list(cluster):
        return None
    assert isinstance(index, int)
    came[index] = (line, said)
    return index


@contextmanager
def join(
    cluster: Sequence[str],
    index: int,
    about: Mapping[str, Any],
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Line]:
    """Come to worker 0 as worker ``index``, and say ``about`` oneself.

    Raises:
        LostError: it is not there within ``seconds``.
    """
    until, why = clock() + seconds, ""
    while True:
        try:
            # Each time anew: a container's name is known only once it has started.
            connection = socket.create_connection(split(cluster[0]), timeout=10.0)
            break
        except OSError as error:
            why = str(error)
        if clock() >= until:
            raise LostError(f"could not be reached within {seconds:.0f} s: {why}")
        sleep(_AGAIN_SECONDS)
    line = Line(connection)
    try:
        line.send(dict(about, worker=index, cluster=list(cluster)))
        yield line
    finally:
        line.close()


def all_done(addresses: Sequence[str], index: int, seconds: float) -> None:
    """Wait until all workers are here, as a courtesy: one that ends first takes its server with it.

    No more than ``seconds``; who does not come is not waited for.
    """
    try:
        if index == 0:
            with hold(addresses, seconds) as came:
                for line, _ in came.values():
                    line.send({"done": True})
        else:
            with join(addresses, index, {}, seconds) as line:
                line.receive(seconds)
    except (LostError, BusyError, OSError):
        pass
