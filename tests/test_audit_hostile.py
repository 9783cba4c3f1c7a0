"""Wheels, headers and libraries made to harm who reads them: refused, quickly, without much memory."""

from __future__ import annotations

import contextlib
import io
import mmap
import random
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, cast

import pytest
from audit_fakes import elf, fatbin, library, ptx, wheel
from tfenv.audit import datafile, deep
from tfenv.audit.elf import Elf
from tfenv.audit.fatbin import groups
from tfenv.audit.headers import build_info, defines, dotted
from tfenv.audit.trees import ZipTree
from tfenv.errors import IntegrityError


def tree(data: bytes) -> ZipTree:
    return ZipTree(cast("IO[bytes]", io.BytesIO(data)), "a.whl")


def one_member(packed: bytes, size: int, *, method: int = 8) -> bytes:
    """A zip file whose directory says what we like."""
    fixed = (0, 0, 0, 0, len(packed), size, 1, 0)
    local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, method, *fixed[:3], *fixed[4:]) + b"a"
    entry = struct.pack("<IHHHHHHIIIHH", 0x02014B50, 20, 20, 0, method, *fixed[:3], *fixed[4:])
    entry += struct.pack("<HHHII", 0, 0, 0, 0, 0) + b"a"
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 1, 1, len(entry), len(local + packed), 0)
    return local + packed + entry + end


def opened(folder: Path, data: bytes) -> Elf:
    path = folder / "lib.so"
    path.write_bytes(data)
    with path.open("rb") as file:
        return Elf(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), "lib.so")


# --- zip -------------------------------------------------------------------------------------------


def test_a_bomb_whose_directory_claims_little_is_not_unpacked() -> None:
    import tracemalloc

    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(bytes(1 << 22)) for _ in range(64)) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(IntegrityError):
            tree(one_member(packed, 100)).text("a")
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_a_library_that_would_fill_the_disk_is_not_unpacked() -> None:
    # More than four bytes can tell goes into an extra field; here the directory is told after the fact.
    made = tree(one_member(b"\x03\0", 0))
    made._members["a"].file_size = 1 << 50
    with pytest.raises(IntegrityError, match="claims"), made.mapped("a"):
        pass


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 93])
def test_members_packed_as_no_wheel_is_are_refused(method: int) -> None:
    with pytest.raises(IntegrityError, match="packed"):
        tree(one_member(b"\xff" * 99, 99, method=method)).text("a")


def test_damaged_zip_files_are_refused_and_nothing_else() -> None:
    sound = wheel({"tensorflow/a": b"hello" * 100, "b": b"x" * 50})
    for seed in range(400):
        chance, data = random.Random(seed), bytearray(sound)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.choice([0, 255, chance.randrange(256)])
        with contextlib.suppress(IntegrityError):
            read = tree(bytes(data))
            for name in read.sizes():
                read.text(name)


# --- small files -----------------------------------------------------------------------------------


def test_blanks_in_a_header_take_no_time() -> None:
    text = "#define A " + " " * 1_000_000 + "!\n#define B " + "x " * 500_000 + "!\n#define C 3 /* three */"
    assert defines(text, re.compile("[A-C]")) == {"C": "3"}


@pytest.mark.parametrize(
    "text",
    [
        "build_info = f(" + "-" * 60_000 + "1)",
        "build_info = f(" + "1+" * 30_000 + "1)",
        "a" + ".b" * 30_000 + " = f(1)",
        "build_info = f([" + "1," * 1_000_000 + "])",
    ],
)
def test_a_build_info_that_no_parser_survives(text: str) -> None:
    with pytest.raises(IntegrityError, match="build_info"):
        build_info(text)


@pytest.mark.parametrize("number", ["12.x", "9" * 5000, "", "-12020", "\u0663\u0663\u0663\u0663\u0663"])
def test_what_is_no_cuda_version(number: str) -> None:
    with pytest.raises(IntegrityError, match="CUDA_VERSION"):
        dotted(number)


def test_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    entry: dict[str, Any] = {"wheels": [], "why": "\ud800"}
    assert datafile.write(file, {"2.9.1": entry})
    assert not datafile.write(file, {"2.9.1": entry})
    assert datafile.load(file)["2.9.1"]["why"] == "?"


# --- libraries -------------------------------------------------------------------------------------


def test_a_zstandard_bomb_is_not_unpacked(tmp_path: Path) -> None:
    import zstandard

    packer = zstandard.ZstdCompressor().compressobj()
    packed = b"".join(packer.compress(bytes(1 << 22)) for _ in range(128)) + packer.flush()
    with pytest.raises(ValueError, match=r"\.target"):
        groups(opened(tmp_path, library(fatbin((1, 80, 0x8011, packed)))))


def test_a_payload_that_is_no_zstandard(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="zstd"):
        groups(opened(tmp_path, library(fatbin((1, 80, 0x8011, b"garbage!" * 9)))))


@pytest.mark.parametrize(
    "data",
    [
        elf({}, needed=("a" * 70_000,)),
        elf({}, needed=("a",) * 2_000),
        elf({f".{i}": b"" for i in range(5_000)}),
    ],
    ids=["a long name", "many names", "many sections"],
)
def test_a_library_of_more_than_any_library_has(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(IntegrityError, match="ELF"):
        opened(tmp_path, data)


def test_damaged_libraries_are_refused_and_nothing_else(tmp_path: Path) -> None:
    sound = elf({".nv_fatbin": fatbin(ptx()), ".text": b"\x90" * 99}, needed=("libc.so.6",))
    for seed in range(400):
        chance, data = random.Random(seed), bytearray(sound)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.choice([0, 127, 255, chance.randrange(256)])
        with contextlib.suppress(IntegrityError):
            deep._library(opened(tmp_path, bytes(data)), "8")


# --- whole downloads -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "sha256"), [(9, "../../escaped"), (1 << 50, "a" * 64), (9, ""), (None, "a" * 64)]
)
def test_a_size_or_hash_that_is_none_ends_a_download(tmp_path: Path, size: Any, sha256: str) -> None:
    import requests
    from tfenv.audit.listing import IndexFile
    from tfenv.audit.survey import Surveyor
    from tfenv.memo import Memo

    told = {
        "version": "2.9.1",
        "python": "3.9",
        "url": "http://index.invalid/a",
        "uploaded": "",
        "yanked": "",
    }
    file = IndexFile(filename="a.whl", size=size, sha256=sha256, **told)
    surveyor = Surveyor(memo=Memo(None), session=requests.Session, scratch=tmp_path)
    with pytest.raises(IntegrityError, match="sha256"), surveyor._downloaded(file, requests.Session()):
        pass


# --- slow servers ----------------------------------------------------------------------------------


class _Raw:
    """A byte at a time, each some seconds after the one before, without end."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        self.clock, self.seconds = clock, seconds

    def read(self, _most: int, decode_content: bool) -> bytes:
        self.clock[0] += self.seconds
        return b"x"


def _slow(clock: list[float], seconds: float, monkeypatch: pytest.MonkeyPatch) -> Any:
    import requests

    monkeypatch.setattr("tfenv.transfer.time.monotonic", lambda: clock[0])
    answer = requests.Response()
    answer.raw = _Raw(clock, seconds)
    return answer


def test_a_server_that_sends_a_byte_now_and_then_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    import requests
    from tfenv.transfer import arriving

    answer = _slow([0.0], 1.0, monkeypatch)
    with pytest.raises(requests.ReadTimeout, match="only"):
        list(arriving(answer, threading.Event()))
    pieces = arriving(_slow([0.0], 1e-9, monkeypatch), threading.Event())
    assert b"".join(next(pieces) for _ in range(2000)) == b"x" * 2000


def test_reading_from_a_slow_server_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from tfenv.transfer import StoppedError, arriving

    stop = threading.Event()
    pieces = arriving(_slow([0.0], 1.0, monkeypatch), stop)
    assert next(pieces) == b"x"
    stop.set()
    with pytest.raises(StoppedError):
        next(pieces)


def test_a_redirection_to_what_is_no_web_address_is_no_fault_of_tfenv(tmp_path: Path) -> None:
    import requests
    from audit_fakes import serving
    from tfenv.store import Store
    from tfenv.transfer import Item, Job, UnreachableError, get

    def away(handler: Any, _name: str) -> bool:
        handler.send_response(302)
        handler.send_header("Location", "file:///etc/hostname")
        handler.end_headers()
        return True

    with serving() as index:
        index.spoil = away
        url = index.url.replace("/simple", "/files/a")
        job = Job(
            store=Store(tmp_path), session=requests.Session, progress=lambda *_: None, sleep=lambda _: None
        )
        item = Item(name="a", sha256="0" * 64, size=9, urls=(url,))
        with pytest.raises(UnreachableError, match="127"):
            get(job, requests.Session(), item, url, tmp_path / "part", 2)


# --- this machine's own files ----------------------------------------------------------------------


def test_an_installation_without_a_version_is_damaged(tmp_path: Path) -> None:
    from tfenv.audit import run

    for name, text in (
        ("tensorflow/python/platform/build_info.py", "build_info = f([('is_cuda_build', True)])"),
        ("tensorflow-1.dist-info/METADATA", "Name: tensorflow\nVersion: not a version\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(IntegrityError, match="version"):
        run.of_folder(tmp_path)


@pytest.mark.parametrize("url", ["file:///dev/zero", "file:///etc"])
def test_what_is_no_file_is_not_copied(url: str, tmp_path: Path) -> None:
    from tfenv.errors import NotReadyError
    from tfenv.transfer import copy

    with pytest.raises(NotReadyError, match="no file"):
        copy(url, tmp_path / "part")
    assert not (tmp_path / "part").exists()
