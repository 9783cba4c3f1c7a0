"""What `tfenv gc` removes of the store, and what it leaves alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_store import put, sha
from tfenv.errors import UsageError
from tfenv.freeing import free
from tfenv.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_gc_removes_what_is_not_kept_and_says_how_much(store: Store) -> None:
    kept, dropped = put(store, b"kept"), put(store, b"dropped")
    store.logs_dir.mkdir()
    (store.logs_dir / "build.log").write_bytes(b"12345")
    store.write_record(sha(b"a"), {"archive": kept})
    store.write_record(sha(b"b"), {"archive": dropped})
    planned = free(store, {kept}, dry_run=True)
    assert store.has(dropped)
    assert free(store, {kept}) == planned
    assert planned.files == 3
    assert planned.bytes >= len(b"dropped") + 5
    assert store.has(kept)
    assert not store.has(dropped)
    assert store.read_record(sha(b"a")) is not None
    assert store.read_record(sha(b"b")) is None
    assert free(store, {kept}).files == 0


def test_gc_leaves_a_folder_alone_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app.log").touch()
    store = Store(tmp_path)
    for _ in range(2):  # also after it was used as a store
        with pytest.raises(UsageError, match="not made by tfenv"):
            free(store, set())
        with store.temp(), store.lock():
            pass
    assert (tmp_path / "logs" / "app.log").exists()


def test_gc_does_not_follow_a_link_out_of_the_store(store: Store, tmp_path: Path) -> None:
    with store.lock():
        pass
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    store.logs_dir.symlink_to(tmp_path / "mine")
    free(store, set())
    assert (tmp_path / "mine" / "file").exists()


def test_gc_removes_stale_temporary_files_only(store: Store) -> None:
    with store.temp():
        pass
    for name in ("100-living", "200-dead", f"{sha(b'x')}.part", f"{sha(b'old')}.part"):
        (store.tmp_dir / name).write_bytes(b"x")
    os.utime(store.tmp_dir / f"{sha(b'old')}.part", (0, 0))
    now = (store.tmp_dir / "100-living").stat().st_mtime + 60
    free(store, set(), now=lambda: now, alive=lambda pid: pid == 100)
    assert {f.name for f in store.tmp_dir.iterdir()} == {"100-living", f"{sha(b'x')}.part"}
    free(store, set(), now=lambda: now + 2 * 86400, alive=lambda pid: True)
    assert not list(store.tmp_dir.iterdir())
