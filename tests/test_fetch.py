from __future__ import annotations

import hashlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from test_lockfile import LOCK, deb, wheel
from tfenv.errors import IntegrityError, NotReadyError, TfenvError
from tfenv.fetch import MissingInputs, fetch, find_local, lacks_interpreter, missing, python_of
from tfenv.index import IndexSettings
from tfenv.mirrors import Mirrors
from tfenv.model import DebianPackage, Interpreter, Lock, Wheel
from tfenv.store import Store


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


NUMPY, TOOL, LIBC = b"numpy wheel", b"uv wheel", b"libc deb"


def real_wheel(data: bytes, *args: Any) -> Wheel:
    return wheel(*args, size=len(data), sha256=sha(data))


def real_deb(data: bytes) -> DebianPackage:
    return deb(size=len(data), sha256=sha(data))


SMALL: Lock = replace(
    LOCK,
    debian=(real_deb(LIBC),),
    wheels=(real_wheel(NUMPY, "numpy"), real_wheel(TOOL, "uv", "0.9.9", "tool")),
)


class Host:
    """A host whose mirror, index and folders are files below ``root``; uv and apt are acted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mirrors = Mirrors(
            debian=(root / "debian").as_uri(), security=(root / "debian-security").as_uri()
        )
        self.on_index: dict[str, str] = {}  # name -> pylock entry
        self.hidden: dict[str, str] = {}  # seen only where an index is asked alone
        self.asked: list[str] = []
        self.put(SMALL.debian[0].path, LIBC, "debian")
        for item, data in zip(SMALL.wheels, (NUMPY, TOOL), strict=True):
            self.offer(item, data)

    def put(self, path: str, data: bytes, place: str) -> Path:
        file = self.root / place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file

    def offer(self, item: Wheel, data: bytes) -> None:
        url = self.put(item.filename, data, "files").as_uri()
        self.on_index[item.name] = (
            f'[[packages]]\nname = "{item.name}"\nversion = "{item.version}"\n'
            f'wheels = [{{ url = "{url}", hashes = {{ sha256 = "{item.sha256}" }} }}]\n'
        )

    def run(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if command[0] == "apt-config":
            return subprocess.CompletedProcess([], 0, "", "")
        alone = options["env"].get("UV_DEFAULT_INDEX") == "https://alone.example"
        offered = {**self.on_index, **(self.hidden if alone else {})}
        names = [line.split("==")[0] for line in options["input"].split()]
        self.asked += names
        for name in names:
            if name not in offered:
                text = f"error: No solution found\n  cause: there is no version of {name}"
                return subprocess.CompletedProcess([], 1, "", text)
        return subprocess.CompletedProcess([], 0, "".join(offered[n] for n in names), "")

    def fetch(self, store: Store, index: IndexSettings | None = None, lock: Lock = SMALL) -> None:
        fetch(
            lock,
            store,
            index or IndexSettings(),
            env={"TFENV_UV": "uv"},
            run=self.run,
            mirrors=self.mirrors,
        )


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_everything_of_the_lock_is_fetched_once(host: Host, store: Store) -> None:
    assert missing(SMALL, store) == (SMALL.debian, SMALL.wheels)
    host.fetch(store)
    assert missing(SMALL, store) == ((), ())
    host.asked.clear()
    host.fetch(store)
    assert host.asked == []


def test_a_find_links_folder_comes_first(host: Host, store: Store, tmp_path: Path) -> None:
    host.put(SMALL.wheels[0].filename, NUMPY, "links")
    host.fetch(store, IndexSettings(find_links=(str(tmp_path / "links"),)))
    assert host.asked == ["uv"]
    assert missing(SMALL, store) == ((), ())


def test_a_local_file_of_that_name_with_other_bytes_is_not_it(tmp_path: Path) -> None:
    item = SMALL.wheels[0]
    file = tmp_path / item.filename
    for content, found in ((NUMPY, (file.as_uri(),)), (NUMPY[::-1], ()), (b"short", ())):
        file.write_bytes(content)
        assert find_local(item, [tmp_path / "absent", tmp_path]) == found


def test_a_wheel_hidden_by_another_index_is_found_by_asking_each_alone(host: Host, store: Store) -> None:
    index = IndexSettings(extra_index_urls=("https://alone.example",))
    host.hidden["numpy"] = host.on_index["numpy"]
    host.on_index["numpy"] = host.on_index["numpy"].replace(sha(NUMPY), sha(b"other build"))
    host.fetch(store, index)
    assert missing(SMALL, store) == ((), ())


def test_missing_wheels_are_all_listed_before_anything_big_is_fetched(host: Host, store: Store) -> None:
    host.on_index.clear()
    with pytest.raises(MissingInputs) as caught:
        host.fetch(store)
    assert caught.value.wheels == tuple(sorted(w.filename for w in SMALL.wheels))
    assert caught.value.debian == ()
    assert "--upgrade wheels" in caught.value.remedy
    assert "PIP_FIND_LINKS" in caught.value.remedy
    assert caught.value.exit_code == 1


def test_missing_debs_tell_both_ways_on(host: Host, store: Store) -> None:
    (host.root / "debian" / SMALL.debian[0].path).unlink()
    with pytest.raises(MissingInputs, match=SMALL.debian[0].filename.replace("+", r"\+")) as caught:
        host.fetch(store)
    assert caught.value.debian == (SMALL.debian[0].filename,)
    assert caught.value.wheels == ()
    assert f"tfenv lock {SMALL.cell} --upgrade debian" in caught.value.remedy
    assert f"tfenv up {SMALL.cell}" in caught.value.remedy
    assert missing(SMALL, store)[1] == SMALL.wheels  # not fetched in vain


def test_a_wheel_that_vanishes_between_index_and_file(host: Host, store: Store) -> None:
    (host.root / "files" / SMALL.wheels[0].filename).unlink()
    with pytest.raises(MissingInputs) as caught:
        host.fetch(store)
    assert caught.value.wheels == (SMALL.wheels[0].filename,)


def test_altered_bytes_are_refused(host: Host, store: Store) -> None:
    host.put(SMALL.wheels[0].filename, NUMPY[::-1], "files")
    with pytest.raises(IntegrityError, match="not the locked file"):
        host.fetch(store)
    assert not store.has(sha(NUMPY))


def test_without_network_the_index_is_not_ready(host: Host, store: Store) -> None:
    def offline(command: Sequence[str], **_: Any) -> Any:
        return subprocess.CompletedProcess([], 2, "", "error: Failed to fetch\n  cause: dns error")

    with pytest.raises(NotReadyError, match="cannot be reached"):
        fetch(SMALL, store, IndexSettings(), env={"TFENV_UV": "uv"}, run=offline, mirrors=host.mirrors)


def test_the_python_of_a_lock() -> None:
    assert python_of(SMALL) == "3.11"
    with pytest.raises(TfenvError, match="no Python"):
        python_of(replace(SMALL, cell="x"))


# A Python that the base does not bring.

TARBALL = b"python tarball " * 5000
PYTHON = Interpreter(
    provider="python-build-standalone",
    version="3.11.9",
    filename="cpython-3.11.9+20251031-x86_64.tar.gz",
    path="20251031/cpython-3.11.9+20251031-x86_64.tar.gz",
    sha256=sha(TARBALL),
    released="2025-10-31T00:00:00Z",
)
ALONE = replace(SMALL, debian=(), wheels=(), interpreter=PYTHON)


def fetch_python(store: Store, mirror: str, lock: Lock = ALONE) -> None:
    """With the environment of nobody else: no proxy between the test and its own server."""
    env = {"TFENV_UV": "uv", "UV_PYTHON_INSTALL_MIRROR": mirror}
    fetch(lock, store, IndexSettings(), env=env, run=lambda *_, **__: pytest.fail("asked uv or apt"))


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_an_interpreter_comes_from_a_folder_that_the_user_has_named(host: Host, store: Store) -> None:
    host.put(PYTHON.path, TARBALL, "pythons")
    assert lacks_interpreter(ALONE, store)
    fetch_python(store, (host.root / "pythons").as_uri())
    assert not lacks_interpreter(ALONE, store)
    assert store.path(PYTHON.sha256).read_bytes() == TARBALL


def test_a_lock_without_an_interpreter_lacks_none(store: Store) -> None:
    assert not lacks_interpreter(SMALL, store)
    fetch_python(store, "file:///nowhere", replace(ALONE, interpreter=None))


def test_an_interpreter_that_is_there_is_not_asked_for(host: Host, store: Store) -> None:
    file = host.put(PYTHON.path, TARBALL, "pythons")
    fetch_python(store, (host.root / "pythons").as_uri())
    file.unlink()
    fetch_python(store, "file:///nowhere")


class Provider(ThreadingHTTPServer):
    """Serves one Python as ``mode`` says; remembers what it was asked."""

    daemon_threads = True

    def __init__(self, mode: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.mode = mode
        self.asked: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mirror"


class _Answer(BaseHTTPRequestHandler):
    server: Provider

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        self.server.asked.append((self.command, self.path))
        mode, data = self.server.mode, TARBALL
        if mode in ("404", "410", "403", "500"):
            self.send_error(int(mode))
            return
        if mode == "moves" and "/moved/" not in self.path:
            self.send_response(302)
            self.send_header("Location", "/moved" + self.path)
            self.end_headers()
            return
        if mode == "wrong bytes":
            data = data[::-1]
        self.send_response(200)
        if mode == "odd length":
            self.send_header("Content-Length", "many")
        elif mode != "no length":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("mode", ["", "moves"])
def test_an_interpreter_comes_from_a_mirror(provider: Provider, store: Store, mode: str) -> None:
    provider.mode = mode
    fetch_python(store, provider.url)
    assert store.path(PYTHON.sha256).read_bytes() == TARBALL
    # The size is asked for first; the plus sign of the name is quoted, as uv does.
    assert provider.asked[0] == ("HEAD", f"/mirror/{PYTHON.path.replace('+', '%2B')}")
    asked = len(provider.asked)
    fetch_python(store, provider.url)
    assert len(provider.asked) == asked


@pytest.mark.parametrize("mode", ["404", "410"])
def test_an_interpreter_that_is_gone_is_told_with_what_to_type(
    provider: Provider, store: Store, mode: str
) -> None:
    provider.mode = mode
    with pytest.raises(MissingInputs, match="gone from its provider") as caught:
        fetch_python(store, provider.url)
    assert PYTHON.filename in caught.value.message
    assert caught.value.remedy == f"tfenv lock {SMALL.cell} --upgrade python"
    assert (caught.value.debian, caught.value.wheels) == ((), ())


def test_an_interpreter_that_is_not_in_the_users_folder_is_gone(store: Store, tmp_path: Path) -> None:
    with pytest.raises(MissingInputs, match="gone from its provider"):
        fetch_python(store, tmp_path.as_uri())


@pytest.mark.parametrize("local", [True, False])
def test_wrong_bytes_are_no_interpreter(host: Host, provider: Provider, store: Store, local: bool) -> None:
    provider.mode = "wrong bytes"
    host.put(PYTHON.path, TARBALL[::-1], "pythons")
    with pytest.raises(IntegrityError):
        fetch_python(store, (host.root / "pythons").as_uri() if local else provider.url)
    assert lacks_interpreter(ALONE, store)


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("no length", "does not tell how big"),
        ("odd length", "does not tell how big"),
        ("403", "403"),
        ("500", "500"),
    ],
)
def test_a_provider_that_does_not_tell_is_named_with_the_way_around_it(
    provider: Provider, store: Store, mode: str, says: str
) -> None:
    provider.mode = mode
    with pytest.raises(NotReadyError, match=says) as caught:
        fetch_python(store, provider.url)
    assert "python-build-standalone: 127.0.0.1 does not give the file" in caught.value.message
    assert "UV_PYTHON_INSTALL_MIRROR" in caught.value.remedy


def test_a_provider_that_cannot_be_reached_is_not_one_that_has_lost_the_file(store: Store) -> None:
    with Provider() as closed:
        url = closed.url
    with pytest.raises(NotReadyError, match="python-build-standalone") as caught:
        fetch_python(store, url)
    assert "network" in caught.value.remedy


def test_a_password_of_the_mirror_is_told_nobody(provider: Provider, store: Store) -> None:
    provider.mode = "500"
    with pytest.raises(NotReadyError) as caught:
        fetch_python(store, provider.url.replace("//", "//me:secret@"))
    assert "secret" not in caught.value.message + caught.value.remedy
