"""Generated files are all old or all new."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tfenv.errors import NotReadyError, UsageError
from tfenv.files import read_text, write_all


def test_files_are_written_as_they_are_given(tmp_path: Path) -> None:
    write_all(tmp_path / "new" / "folder", {"a": "one\r\nzwei größer\n", "b": ""})
    assert (tmp_path / "new" / "folder" / "a").read_bytes() == "one\r\nzwei größer\n".encode()
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["a", "b"]


def test_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a").write_text("old")
    write_all(tmp_path, {"a": "new"})
    assert ((tmp_path / "mine").read_text(), (tmp_path / "a").read_text()) == ("mine", "new")


@pytest.mark.parametrize("after", [0, 1])
def test_a_full_disk_leaves_all_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    write_all(tmp_path, {"a": "old a", "b": "old b"})
    calls = iter(range(10))

    def full(_: int) -> None:
        if next(calls) >= after:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotReadyError, match="No space left") as caught:
        write_all(tmp_path, {"a": "new a", "b": "new b"})
    assert caught.value.remedy
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old a", "b": "old b"}


def test_an_interrupt_leaves_all_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all(tmp_path, {"a": "old"})

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path, {"a": "new"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}


def test_a_file_in_the_folders_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("a file")
    for folder in (tmp_path / "images", tmp_path / "images" / "cell"):
        with pytest.raises(NotReadyError, match="cannot write"):
            write_all(folder, {"a": "x"})
    assert (tmp_path / "images").read_text() == "a file"


def test_a_folder_in_a_files_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(NotReadyError):
        write_all(tmp_path, {"a": "x"})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_of_the_user_is_read_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"gr\xc3\xb6\xdf")
    assert read_text(tmp_path / "a", 5) == "grö\ufffd"
    pipe = tmp_path / "pipe"  # as of a shell's <(...)
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        pool.submit(pipe.write_text, "x")
        assert read_text(pipe, 5) == "x"


@pytest.mark.parametrize("name", ["long", "utf16", "/dev/zero", ".", "missing"])
def test_what_does_not_end_or_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "long").write_text("123456")
    (tmp_path / "utf16").write_text("ab", encoding="utf-16")
    with pytest.raises(UsageError):
        read_text(tmp_path / name, 5)


def test_the_end_of_lines_is_the_same_from_windows(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one\r\ntwo\rtwo\n")
    assert read_text(file, 100) == "one\ntwo\rtwo\n"
