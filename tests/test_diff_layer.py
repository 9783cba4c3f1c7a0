"""One layer as it streams by: what is kept of it, and what a hostile one cannot do."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tracemalloc

import image_files
import pytest
import small
import zstandard
from tfenv.diff import layer as reading
from tfenv.diff.layer import read_layer
from tfenv.diff.model import Entry, Layer
from tfenv.errors import IntegrityError


def read(data: bytes, **more: str) -> Layer:
    return read_layer(io.BytesIO(data), **more)


@pytest.mark.parametrize("kind", ["", "gzip", "zstd"])
def test_every_compression_gives_the_same_layer(kind: str) -> None:
    files = {"usr/bin/a": b"aaa", "./usr/b": b"", "/etc/c": b"c"}
    data = image_files.layer(files, kind)
    found = read(data, sha256=hashlib.sha256(data).hexdigest())
    assert set(found.entries) == {"usr/bin/a", "usr/b", "etc/c"}
    assert found.entries["usr/bin/a"] == Entry("f", 0o644, "0:0", 3, hashlib.sha256(b"aaa").hexdigest())
    assert found.size == 4


def test_kinds_owners_and_links() -> None:
    members = [
        small.folder("usr/"),
        small.file("usr/a", b"a", uid=5, gid=6, mode=0o755),
        small.link("usr/l", "a"),
        small.link("usr/h", "usr/a", tarfile.LNKTYPE),
        (small.member("dev/null", tarfile.CHRTYPE), b""),
    ]
    found = read(small.tarred(members)).entries
    assert {path: entry.kind for path, entry in found.items()} == {
        "usr": "d",
        "usr/a": "f",
        "usr/l": "l",
        "usr/h": "f",
        "dev/null": "o",
    }
    assert found["usr/l"].content == "a"
    assert found["usr/h"] == found["usr/a"]
    assert (found["usr/a"].owner, found["usr/a"].mode) == ("5:6", 0o755)


def test_only_texts_that_tell_what_is_installed_are_kept() -> None:
    kept = {
        "var/lib/dpkg/status": b"a",
        "var/lib/dpkg/status.d/libc6": b"b",
        "etc/os-release": b"c",
        "usr/share/doc/dash/copyright": b"d",
        "opt/tfenv/cuda/x-1.dist-info/METADATA": b"e",
        "x/site-packages/y.egg-info/PKG-INFO": b"f",
    }
    other = {
        "x/site-packages/setuptools/_vendor/z-1.dist-info/METADATA": b"x",
        "opt/conda/pkgs/z-1/site-packages/z-1.dist-info/METADATA": b"x",
        "usr/share/doc/dash/changelog": b"x",
        "home/METADATA": b"x",
        "var/lib/dpkg/status-old": b"x",
    }
    found = read(image_files.layer({**kept, **other}))
    assert found.texts == {path: data.decode() for path, data in kept.items()}
    assert set(found.entries) == {*kept, *other}


def test_a_changed_byte_is_found() -> None:
    data = image_files.layer({"a": b"a"}, "")
    with pytest.raises(IntegrityError, match="its own hash"):
        read(data, sha256=hashlib.sha256(data + b"x").hexdigest(), name="layer 1")


@pytest.mark.parametrize("kind", ["", "gzip", "zstd"])
def test_a_layer_that_is_cut_off_is_an_error(kind: str) -> None:
    data = image_files.layer({"a": b"0123456789" * 200_000, "b": b"b"}, kind)
    with pytest.raises(IntegrityError, match="layer 1"):
        read(data[: len(data) // 2], sha256=hashlib.sha256(data).hexdigest(), name="layer 1")


@pytest.mark.parametrize("data", [b"no tar at all" * 100, b"\x28\xb5\x2f\xfdno zstd", b"\x1f\x8bno gzip"])
def test_what_is_no_layer_is_an_error(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="cannot be read"):
        read(data)


def test_a_name_drives_no_terminal_and_leads_nowhere() -> None:
    found = read(small.tarred([small.file("a\x1b[31m/\x07b\n"), small.file("../../etc/passwd")]))
    assert set(found.entries) == {"a/b", "../../etc/passwd"}  # a key, that nothing opens


def test_a_long_header_takes_no_memory() -> None:
    """tarfile reads an extended header whole: one that claims 500 MB of zeros fits into some kilobytes."""
    head = tarfile.TarInfo("x")
    head.type, head.size = tarfile.XHDTYPE, 500 << 20
    data = zstandard.compress(head.tobuf(tarfile.GNU_FORMAT) + bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(IntegrityError, match="extended header"):
            read(data)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_too_many_files_and_too_many_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = image_files.layer({"a": b"a" * 100, "b": b"b", "c": b"c"})
    assert read(data).size == 102
    monkeypatch.setattr(reading, "MOST_ENTRIES", 2)
    with pytest.raises(IntegrityError, match="more than 2 files"):
        read(data)
    monkeypatch.setattr(reading, "MOST_ENTRIES", 10)
    monkeypatch.setattr(reading, "MOST_BYTES", 101)
    with pytest.raises(IntegrityError, match="more than"):
        read(data)


def test_a_file_that_claims_more_than_there_may_be_is_refused_before_it_is_read() -> None:
    head = tarfile.TarInfo("big")
    head.size = reading.MOST_BYTES + 1
    with pytest.raises(IntegrityError, match="more than"):
        read(head.tobuf(tarfile.GNU_FORMAT) + bytes(1024))


def test_names_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = small.tarred([small.file("a" * 90), small.link("b", "c" * 90)])
    assert len(read(data).entries) == 2
    monkeypatch.setattr(reading, "MOST_NAMES", 100)
    with pytest.raises(IntegrityError, match="of names"):
        read(data)


def test_texts_are_cut_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_TEXT", 10)
    path = "usr/share/doc/dash/copyright"
    assert read(image_files.layer({path: b"0123456789abc"})).texts == {path: "0123456789"}
    monkeypatch.setattr(reading, "MOST_TEXTS", 15)
    other = "usr/share/doc/bash/copyright"
    found = read(image_files.layer({path: b"0123456789abc", other: b"0123456789abc"}))
    assert set(found.texts) == {path}
    assert "more lists" in found.note
