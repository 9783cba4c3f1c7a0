from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from tfenv.download import download
from tfenv.errors import IntegrityError, NotReadyError
from tfenv.measure import measure
from tfenv.store import Store
from tfenv.transfer import Item

DATA = bytes(range(256)) * 4096  # 1 MiB: several chunks
SHA = hashlib.sha256(DATA).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves what the test's ``answer`` says, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []
        self.answers: dict[str, Callable[[Handler, int], None]] = {}
        self.guard = threading.Lock()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        with self.server.guard:
            self.server.asked.append((self.path, self.headers.get("Range")))
            count = sum(1 for path, _ in self.server.asked if path == self.path)
        answer = self.server.answers.get(self.path)
        if answer is None:
            self.send_error(404)
        else:
            answer(self, count)

    def body(self, data: bytes, *, resume: bool = True, announce: int | None = None) -> None:
        start = 0
        wanted = self.headers.get("Range")
        if wanted and resume:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str((announce or len(data)) - start))
        self.end_headers()
        self.wfile.write(data[start:])

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def item(*urls: str, name: str = "x.whl", data: bytes = DATA) -> Item:
    return Item(name=name, sha256=hashlib.sha256(data).hexdigest(), size=len(data), urls=urls)


def plain_session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False  # no proxy between the test and 127.0.0.1
    return session


def fetch(store: Store, *items: Item, **options: Any) -> tuple[Item, ...]:
    return download(items, store, plain_session, sleep=lambda _: None, **options)


def test_a_file_arrives_and_its_progress_is_told(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA)
    seen: list[tuple[str, int, int]] = []
    assert fetch(store, item(server.url("/x")), progress=lambda *step: seen.append(step)) == ()
    assert store.path(SHA).read_bytes() == DATA
    assert seen[-1] == ("x.whl", len(DATA), len(DATA))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})
    assert not list(store.tmp_dir.iterdir())


def test_what_is_stored_is_not_asked_for(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA)
    fetch(store, item(server.url("/x")))
    fetch(store, item(server.url("/x")))
    assert len(server.asked) == 1


def test_an_interrupted_file_is_resumed(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA)
    store.tmp_dir.mkdir(parents=True)
    (store.tmp_dir / f"{SHA}.part").write_bytes(DATA[:1000])
    fetch(store, item(server.url("/x")))
    assert server.asked == [("/x", "bytes=1000-")]
    assert store.has(SHA, len(DATA))


def test_a_server_that_cannot_resume_sends_all(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA, resume=False)
    store.tmp_dir.mkdir(parents=True)
    (store.tmp_dir / f"{SHA}.part").write_bytes(DATA[:1000])
    fetch(store, item(server.url("/x")))
    assert store.has(SHA, len(DATA))


def test_a_server_that_refuses_the_range_is_asked_for_all(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, n: h.send_error(416) if n == 1 else h.body(DATA)
    store.tmp_dir.mkdir(parents=True)
    (store.tmp_dir / f"{SHA}.part").write_bytes(b"junk")
    fetch(store, item(server.url("/x")))
    assert server.asked == [("/x", "bytes=4-"), ("/x", None)]


def test_a_truncated_transfer_goes_on_where_it_stopped(server: Server, store: Store) -> None:
    def cut(handler: Handler, count: int) -> None:
        handler.body(DATA[:500_000] if count == 1 else DATA, announce=len(DATA))
        handler.close_connection = True

    server.answers["/x"] = cut
    fetch(store, item(server.url("/x")))
    first, second = (wanted for _, wanted in server.asked)
    assert first is None
    assert second is not None
    assert 0 < int(second.removeprefix("bytes=").rstrip("-")) <= 500_000
    assert store.has(SHA, len(DATA))


def test_errors_of_a_moment_are_retried(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, n: h.send_error(500 if n == 1 else 503) if n < 3 else h.body(DATA)
    fetch(store, item(server.url("/x")))
    assert store.has(SHA)
    assert len(server.asked) == 3


def test_errors_that_stay_are_not_ready(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.send_error(503)
    with pytest.raises(NotReadyError, match=r"x\.whl cannot be fetched: .*answers 503"):
        fetch(store, item(server.url("/x")))


@pytest.mark.parametrize("code", [401, 403])
def test_a_refusal_is_not_retried(server: Server, store: Store, code: int) -> None:
    server.answers["/x"] = lambda h, _: h.send_error(code)
    with pytest.raises(NotReadyError, match=str(code)):
        fetch(store, item(server.url("/x")))
    assert len(server.asked) == 1


def test_wrong_bytes_are_refused_and_the_part_removed(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.body(b"!" + DATA[1:])
    with pytest.raises(IntegrityError, match=rf"x\.whl from .*expected {SHA}") as caught:
        fetch(store, item(server.url("/x")))
    assert "mirror or proxy" in caught.value.remedy
    assert not store.has(SHA)
    assert not list(store.tmp_dir.iterdir())


def test_a_file_that_is_too_long_is_refused(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA + b"more")
    with pytest.raises(IntegrityError, match=f"expected {len(DATA)}"):
        fetch(store, item(server.url("/x")))
    assert not list(store.tmp_dir.iterdir())


def test_a_password_in_a_url_is_not_told(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA[::-1])
    with pytest.raises(IntegrityError) as caught:
        fetch(store, item(server.url("/x").replace("//", "//me:secret@")))
    assert "secret" not in str(caught.value)


def test_all_missing_files_are_listed_and_the_rest_arrives(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA)
    gone = [item(server.url(f"/{n}"), name=n, data=n.encode()) for n in ("b", "a")]
    assert [i.name for i in fetch(store, *gone, item(server.url("/x")))] == ["a", "b"]
    assert store.has(SHA)


def test_a_second_place_is_tried(server: Server, store: Store) -> None:
    server.answers["/second"] = lambda h, _: h.body(DATA)
    assert fetch(store, item(server.url("/first"), server.url("/second"))) == ()
    assert [path for path, _ in server.asked] == ["/first", "/second"]


def test_after_wrong_bytes_the_next_place_is_tried(server: Server, store: Store) -> None:
    server.answers["/wrong"] = lambda h, _: h.body(DATA[::-1])
    server.answers["/long"] = lambda h, _: h.body(DATA + b"more")
    server.answers["/right"] = lambda h, _: h.body(DATA)
    assert fetch(store, item(*map(server.url, ("/wrong", "/long", "/right")))) == ()
    assert store.path(SHA).read_bytes() == DATA
    assert server.asked == [("/wrong", None), ("/long", None), ("/right", None)]
    assert not list(store.tmp_dir.iterdir())


@pytest.mark.parametrize("other", ["/gone", "/busy", "/also"])
@pytest.mark.parametrize("first", [True, False])
def test_wrong_bytes_are_told_where_no_place_has_the_right_ones(
    server: Server, store: Store, other: str, first: bool
) -> None:
    server.answers["/wrong"] = server.answers["/also"] = lambda h, _: h.body(DATA[::-1])
    server.answers["/busy"] = lambda h, _: h.send_error(503)
    places = [server.url("/wrong"), server.url(other)]
    with pytest.raises(IntegrityError, match="not the locked file"):
        fetch(store, item(*(places if first else reversed(places))))
    assert not store.has(SHA)


@pytest.mark.parametrize("left", [DATA[::-1], DATA[::-1][:1000], DATA + b"more"])
def test_wrong_bytes_that_were_left_are_not_held_against_a_place(
    server: Server, store: Store, left: bytes
) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA)
    store.tmp_dir.mkdir(parents=True)
    (store.tmp_dir / f"{SHA}.part").write_bytes(left)
    assert fetch(store, item(server.url("/x"))) == ()
    assert store.path(SHA).read_bytes() == DATA
    assert server.asked[-1] == ("/x", None)


def test_a_whole_file_that_was_left_is_not_asked_for(server: Server, store: Store) -> None:
    store.tmp_dir.mkdir(parents=True)
    (store.tmp_dir / f"{SHA}.part").write_bytes(DATA)
    assert fetch(store, item(server.url("/x"))) == ()
    assert server.asked == []


def test_what_one_place_began_another_one_ends(server: Server, store: Store) -> None:
    def junk(handler: Handler, count: int) -> None:
        handler.body(b"<html>come in and pay</html>", resume=False)

    server.answers["/portal"] = junk
    server.answers["/x"] = lambda h, _: h.body(DATA)
    assert fetch(store, item(server.url("/portal"), server.url("/x"))) == ()
    assert server.asked[-1] == ("/x", None)
    assert store.path(SHA).read_bytes() == DATA


def free_port() -> int:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        return closed.server_address[1]


def test_gone_from_the_mirror_with_no_other_place_in_reach_is_missing(server: Server, store: Store) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/x"
    assert fetch(store, item(server.url("/gone"), nowhere)) == (item(server.url("/gone"), nowhere),)


def test_no_network_is_not_the_same_as_gone(server: Server, store: Store) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/x"
    with pytest.raises(NotReadyError, match="no connection") as caught:
        fetch(store, item(nowhere, server.url("/gone")))
    assert "goes on" in caught.value.remedy


def test_the_first_fatal_error_stops_the_others(server: Server, store: Store) -> None:
    server.answers["/bad"] = lambda h, _: h.body(b"?" * 10)
    many = [item(server.url(f"/{n}"), name=str(n), data=bytes([n])) for n in range(50)]
    bad = item(server.url("/bad"), name="bad", data=b"0123456789")  # the largest: it comes first
    with pytest.raises(IntegrityError):
        fetch(store, bad, *many, workers=1)
    assert [path for path, _ in server.asked] == ["/bad"]


def test_an_interrupt_keeps_the_part(server: Server, store: Store) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(store, item(server.url("/x")), progress=interrupt)
    part = store.tmp_dir / f"{SHA}.part"
    assert 0 < part.stat().st_size < len(DATA)
    fetch(store, item(server.url("/x")))
    assert store.has(SHA)


def test_a_session_that_cannot_be_made_is_told(store: Store) -> None:
    def broken() -> requests.Session:
        raise NotReadyError("no CA file", remedy="r")

    with pytest.raises(NotReadyError, match="no CA file"):
        download([item("http://127.0.0.1/x")], store, broken)


def test_local_files_are_copied_and_absent_ones_missing(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "a b+c.whl"
    source.write_bytes(DATA)
    absent = item((tmp_path / "absent").as_uri(), name="absent", data=b"absent")
    assert fetch(store, item(source.as_uri()), absent) == (absent,)
    assert store.has(SHA)
    assert source.exists()


def test_measuring(server: Server, tmp_path: Path) -> None:
    server.answers["/x"] = lambda h, _: h.body(DATA)
    (tmp_path / "x").write_bytes(DATA)
    for url in (server.url("/x"), (tmp_path / "x").as_uri()):
        assert measure(url, plain_session()) == (len(DATA), SHA)
    with pytest.raises(NotReadyError, match="404"):
        measure(server.url("/absent"), plain_session())
