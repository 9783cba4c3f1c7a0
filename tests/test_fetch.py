from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_lockfile import LOCK, deb, wheel
from tfenv.errors import IntegrityError, NotReadyError, TfenvError
from tfenv.fetch import MissingInputs, fetch, find_local, missing, python_of
from tfenv.index import IndexSettings
from tfenv.mirrors import Mirrors
from tfenv.model import DebianPackage, Lock, Wheel
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
