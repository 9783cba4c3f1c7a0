from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tfenv.errors import IntegrityError, NotReadyError
from tfenv.store import Store, default_store


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def put(store: Store, data: bytes) -> str:
    with store.temp() as file:
        file.write_bytes(data)
        store.add(file, sha(data))
    return sha(data)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_blob_is_found_by_hash_and_size(store: Store) -> None:
    digest = put(store, b"wheel")
    assert store.has(digest)
    assert store.has(digest, 5)
    assert store.path(digest).read_bytes() == b"wheel"
    assert not list(store.tmp_dir.iterdir())


def test_a_cut_off_blob_counts_as_absent(store: Store) -> None:
    digest = put(store, b"wheel")
    store.path(digest).write_bytes(b"whe")
    assert not store.has(digest, 5)
    assert not store.has(sha(b"other"))


def test_wrong_content_is_refused_and_not_stored(store: Store) -> None:
    with store.temp() as file:
        file.write_bytes(b"altered")
        with pytest.raises(IntegrityError, match=r"x\.whl: its sha256 is .*, expected"):
            store.add(file, sha(b"wheel"), name="x.whl")
    assert not store.has(sha(b"wheel"))


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "A" * 64, "ab"])
def test_what_is_no_sha256_names_no_path(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="not a sha256"):
        store.path(name)


def test_a_temporary_file_goes_away_on_failure(store: Store) -> None:
    with pytest.raises(RuntimeError), store.temp() as file:
        assert file.parent == store.tmp_dir
        raise RuntimeError
    assert not list(store.tmp_dir.iterdir())


def test_records_are_read_back_and_damage_is_no_record(store: Store) -> None:
    key = sha(b"inputs")
    assert store.read_record(key) is None
    store.write_record(key, {"digest": "sha256:x", "size": 3})
    assert store.read_record(key) == {"digest": "sha256:x", "size": 3}
    (store.builds_dir / f"{key}.json").write_text('{"digest": ')
    assert store.read_record(key) is None
    (store.builds_dir / f"{key}.json").write_text("[1]")
    assert store.read_record(key) is None


def test_a_blob_is_proved_by_reading_it(store: Store) -> None:
    sha256 = hashlib.sha256(b"input").hexdigest()
    with store.temp() as file:
        file.write_bytes(b"input")
        store.add(file, sha256)
    assert store.prove(sha256).read_bytes() == b"input"
    with pytest.raises(FileNotFoundError):
        store.prove("0" * 64)


@pytest.mark.parametrize("kind", ["other bytes", "link", "folder"])
def test_a_blob_that_was_changed_is_removed(store: Store, tmp_path: Path, kind: str) -> None:
    path = store.path(hashlib.sha256(b"input").hexdigest())
    path.parent.mkdir(parents=True)
    if kind == "other bytes":
        path.write_bytes(b"inpuT")
    elif kind == "link":
        (tmp_path / "elsewhere").write_bytes(b"input")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.mkdir()
        (path / "file").touch()
    with pytest.raises(IntegrityError, match="has been removed") as caught:
        store.prove(path.name)
    assert "type the command again" in caught.value.remedy
    assert not path.exists() and (kind != "link" or (tmp_path / "elsewhere").exists())


def test_the_lock_is_reentrant_and_released(store: Store) -> None:
    with store.lock(), store.lock():
        pass
    said: list[str] = []
    with Store(store.root, say=said.append).lock():
        pass
    assert said == []


def test_a_second_process_waits_and_says_for_whom(store: Store) -> None:
    code = (
        "import sys; from pathlib import Path; from tfenv.store import Store\n"
        f"s = Store(Path({str(store.root)!r}), say=lambda m: print(m, flush=True))\n"
        "with s.lock(): print('mine', flush=True)"
    )
    with store.lock():
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == f"waiting for another tfenv, pid {os.getpid()}\n"
    assert child.communicate(timeout=60)[0] == "mine\n"


def test_a_store_that_cannot_be_written_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    broken = Store(tmp_path / "file" / "store")
    with pytest.raises(NotReadyError, match="cannot write") as caught, broken.lock():
        pass
    assert "TFENV_CACHE" in caught.value.remedy
    with pytest.raises(NotReadyError), broken.temp():
        pass


@pytest.mark.parametrize(
    ("env", "root"),
    [
        ({"TFENV_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/tfenv"),
        ({"HOME": "/h", "TFENV_CACHE": ""}, "/h/.cache/tfenv"),
    ],
)
def test_where_the_store_is(env: dict[str, str], root: str) -> None:
    assert default_store(env).root == Path(root)
