"""Listings, ranges, wheels and small files: what they tell, and what is refused."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import pytest
import requests
from audit_fakes import IndexServer, members, serving, wheel, wheel_name
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tfenv.audit import shallow
from tfenv.audit.headers import build_info, defines, dotted, metadata
from tfenv.audit.listing import wheels_of
from tfenv.audit.ranges import NoRangesError, RangeFile
from tfenv.audit.trees import FolderTree, ZipTree
from tfenv.errors import IntegrityError, NotReadyError, TfenvError, UsageError
from tfenv.simple_index import SimpleIndex
from tfenv.transfer import StoppedError

DATA = bytes(range(256)) * 1024


@pytest.fixture
def index() -> Iterator[IndexServer]:
    with serving() as server:
        yield server


def remote(index: IndexServer, name: str, size: int | None) -> RangeFile:
    url = index.url.replace("/simple", f"/files/{name}")
    return RangeFile(url, size, requests.Session(), sleep=lambda _seconds: None)


# --- what they list --------------------------------------------------------------------------------


def test_the_wheels_of_an_index(index: IndexServer) -> None:
    names = [
        wheel_name("2.10.0"),
        wheel_name("2.9.1", "3.10"),
        wheel_name("2.9.1", "3.9"),
        wheel_name("2.11.0rc1"),
    ]
    other = [
        "tensorflow-2.10.0-cp311-cp311-win_amd64.whl",
        "tensorflow-2.10.0-cp311-cp311-manylinux_2_17_aarch64.whl",
        "tensorflow-2.10.0.tar.gz",
        "tensorflow-nonsense.whl",
        wheel_name("2.3.0", "3.8"),
        wheel_name("2.4.0rc1", "3.8"),
    ]
    index.files = dict.fromkeys([*names, *other], DATA)
    index.yanked = {names[0]: "broken"}
    found = wheels_of("tensorflow", index.simple(), "2.4")
    assert [(w.version, w.python) for w in found] == [
        ("2.9.1", "3.9"),
        ("2.9.1", "3.10"),
        ("2.10.0", "3.11"),
        ("2.11.0rc1", "3.11"),
    ]
    assert (found[2].yanked, found[1].yanked) == ("broken", "")
    assert found[0].uploaded == "2024-03-08T23:47:37Z"
    assert found[0].size == len(DATA)
    assert found[0].url == index.url.replace("/simple", f"/files/{found[0].filename}")


def test_an_index_of_html(tmp_path: Path) -> None:
    name = wheel_name("2.10.0")
    folder = tmp_path / "tensorflow"
    folder.mkdir()
    (folder / "index.html").write_text(
        f'<a href="../files/{name}#sha256=abc" data-yanked="">x</a><a>none</a><a href="../x.zip">y</a>'
    )
    indexes = SimpleIndex((tmp_path.as_uri(), (tmp_path / "none").as_uri()), requests.Session())
    (found,) = wheels_of("tensorflow", indexes, "2.4")
    assert (found.sha256, found.size, found.yanked, found.uploaded) == ("abc", None, "yanked", "")
    assert found.url == f"{tmp_path.as_uri()}/files/{name}"


def test_a_project_that_no_index_has(index: IndexServer) -> None:
    with pytest.raises(TfenvError, match="no index has wheels"):
        wheels_of("other", index.simple(), "2.4")


def test_an_index_that_is_down(index: IndexServer) -> None:
    url = index.url.replace(str(index.server_address[1]), "9")
    with pytest.raises(NotReadyError, match="cannot be read"):
        wheels_of("tensorflow", SimpleIndex((url,), requests.Session()), "2.4")


@pytest.mark.parametrize("answer", ["{", "[]", '{"files": 3}', "{}"])
def test_an_index_that_answers_something_else(index: IndexServer, answer: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(index, "listing", lambda: json.loads(answer) if answer != "{" else answer)
    with pytest.raises(TfenvError, match="no listing"):
        wheels_of("tensorflow", index.simple(), "2.4")


# --- ranges ----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reads=st.lists(st.tuples(st.integers(0, len(DATA)), st.integers(0, 90_000)), max_size=6))
def test_reading_anywhere_gives_the_files_bytes(index: IndexServer, reads: list[tuple[int, int]]) -> None:
    index.files["f"] = DATA
    file = remote(index, "f", len(DATA))
    for offset, length in reads:
        file.seek(offset)
        assert file.read(length) == DATA[offset : offset + length]
        assert file.tell() == min(len(DATA), offset + length)


def test_reading_straight_on_asks_for_more_each_time(index: IndexServer) -> None:
    index.files["f"] = DATA * 8
    file = remote(index, "f", len(DATA) * 8)
    while file.read(4096):
        pass
    assert file.fetched == len(DATA) * 8
    assert len(index.asked) < 10
    file.seek(17)
    assert file.read(1) == DATA[17:18]
    assert file.fetched == len(DATA) * 8 + (1 << 15)


def test_a_size_that_the_index_does_not_tell(index: IndexServer) -> None:
    index.files["f"] = DATA
    assert remote(index, "f", None).size == len(DATA)


def test_a_server_that_sends_whole_files_is_not_read(index: IndexServer) -> None:
    index.files["f"] = DATA
    index.ranges = False
    with pytest.raises(NoRangesError) as caught:
        remote(index, "f", len(DATA)).read(9)
    assert "--whole" in caught.value.remedy


def test_a_busy_server_is_asked_again(index: IndexServer) -> None:
    index.files["f"] = DATA

    def busy(handler: Any, _name: str) -> bool:
        if len(index.asked) < 3:
            handler.send_error(503)
        return len(index.asked) < 3

    index.spoil = busy
    assert remote(index, "f", len(DATA)).read(9) == DATA[:9]


def test_a_server_that_stays_busy(index: IndexServer) -> None:
    index.files["f"] = DATA

    def busy(handler: Any, _name: str) -> bool:
        handler.send_error(503)
        return True

    index.spoil = busy
    with pytest.raises(NotReadyError, match="503"):
        remote(index, "f", len(DATA)).read(9)
    assert len(index.asked) == 5


def test_a_file_that_is_gone(index: IndexServer) -> None:
    with pytest.raises(NotReadyError, match="404"):
        remote(index, "f", len(DATA)).read(9)


def test_an_answer_that_is_cut_off_is_asked_again(index: IndexServer) -> None:
    index.files["f"] = DATA

    def cut(handler: Any, _name: str) -> bool:
        if len(index.asked) > 1:
            return False
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes 0-32767/{len(DATA)}")
        handler.end_headers()
        handler.wfile.write(DATA[:100])
        return True

    index.spoil = cut
    assert remote(index, "f", len(DATA)).read(9) == DATA[:9]
    assert len(index.asked) == 2


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("bytes 0-32767/999", "999 bytes"),
        ("bytes 5-32772/{size}", "another range"),
        ("", "another range"),
    ],
)
def test_an_answer_about_something_else(index: IndexServer, told: str, why: str) -> None:
    def lie(handler: Any, _name: str) -> bool:
        handler.send_response(206)
        handler.send_header("Content-Range", told.format(size=len(DATA)))
        handler.send_header("Content-Length", "32768")
        handler.end_headers()
        handler.wfile.write(DATA[:32768])
        return True

    index.spoil = lie
    with pytest.raises(IntegrityError, match=why):
        remote(index, "f", len(DATA)).read(9)


def test_a_file_that_becomes_shorter(index: IndexServer) -> None:
    index.files["f"] = DATA
    file = remote(index, "f", len(DATA) + (1 << 20))
    file.seek(len(DATA) + 99)
    with pytest.raises(IntegrityError, match="shorter"):
        file.read(9)


def test_a_file_that_is_replaced_between_two_requests(index: IndexServer) -> None:
    index.files["f"], index.etags = DATA, True
    file = remote(index, "f", len(DATA))
    assert file.read(9) == DATA[:9]
    index.files["f"] = DATA[::-1]
    file.seek(100_000)
    with pytest.raises(IntegrityError, match="replaced"):
        file.read(9)


def test_nobody_is_made_to_read_a_whole_wheel_at_once(index: IndexServer) -> None:
    with pytest.raises(IntegrityError, match="claims"):
        remote(index, "f", 1 << 30).read()
    with pytest.raises(OSError, match="before the start"):
        remote(index, "f", 9).seek(-1)


# --- wheels and folders ----------------------------------------------------------------------------


def tree(data: bytes) -> ZipTree:
    return ZipTree(cast("IO[bytes]", io.BytesIO(data)), "a.whl")


def test_a_wheels_members() -> None:
    made = tree(wheel({"a/b.txt": b"text", "c": b"x" * 9}))
    assert made.sizes() == {"a/b.txt": 4, "c": 9}
    assert made.text("a/b.txt") == "text"
    with made.mapped("c") as data:
        assert data[:] == b"x" * 9


@pytest.mark.parametrize("cut", [0, 10, -1, -30, 60])
def test_a_wheel_that_was_cut_off(cut: int) -> None:
    data = wheel({"a": b"text" * 99, "b": b"more"})
    with pytest.raises(IntegrityError, match="cannot be read"):
        tree(data[:cut]).text("a")


def test_a_directory_that_lies_about_a_member() -> None:
    data = wheel({"a": b"text" * 99, "b": b"text" * 99})
    start = data.rindex(b"PK\x01\x02")
    elsewhere = data[: start + 42] + (5).to_bytes(4, "little") + data[start + 46 :]
    with pytest.raises(IntegrityError):
        tree(elsewhere).text("b")
    other_crc = data[: start + 16] + b"\0\0\0\0" + data[start + 20 :]
    with pytest.raises(IntegrityError, match="CRC"):
        tree(other_crc).text("b")
    with pytest.raises(IntegrityError), tree(other_crc).mapped("b"):
        pass
    huge = data[: start + 24] + b"\xff\xff\xff\x7f" + data[start + 28 :]
    with pytest.raises(IntegrityError, match="claims"):
        tree(huge).text("b")


def test_an_empty_library_is_damaged() -> None:
    with pytest.raises(IntegrityError, match="empty"), tree(wheel({"a": b""})).mapped("a"):
        pass


def install(root: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def test_an_installed_tensorflow_is_found_in_an_image(tmp_path: Path) -> None:
    root = tmp_path / "opt/venv/lib/python3.11/site-packages"
    install(root, members("2.15.1"))
    (tmp_path / "loop").symlink_to(tmp_path)
    for folder in (tmp_path, root):
        assert shallow.read(FolderTree(folder)) == shallow.read(tree(wheel(members("2.15.1"))))
    with FolderTree(root).mapped("tensorflow/python/platform/build_info.py") as data:
        assert b"OrderedDict" in data[:]


def test_none_or_two_installed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="found none"):
        FolderTree(tmp_path)
    for name in ("a", "b"):
        install(tmp_path / name, members("2.15.1"))
    with pytest.raises(UsageError, match="more than one"):
        FolderTree(tmp_path)


# --- small files -----------------------------------------------------------------------------------


def test_what_a_tensorflow_says() -> None:
    found = shallow.read(tree(wheel(members("2.15.1"))))
    assert found["version"] == "2.15.1"
    assert found["requires"] == ['nvidia-cudnn-cu12==8.9.4.25; extra == "and-cuda"']
    assert found["build_info"]["cuda_version"] == "12.2"
    assert found["headers"]["cuda.h"]["CUDA_VERSION"] == "12020"
    assert found["headers"]["nccl.h"]["NCCL_MINOR"] == "16"
    assert "cudnn_version.h" not in found["headers"]


@pytest.mark.parametrize(
    "missing", ["tensorflow/python/platform/build_info.py", "tensorflow-2.15.1.dist-info/METADATA"]
)
def test_what_is_no_tensorflow(missing: str) -> None:
    files = members("2.15.1")
    del files[missing]
    with pytest.raises(IntegrityError, match=missing.rsplit("/", 1)[-1]):
        shallow.read(tree(wheel(files)))


def test_macros_of_a_header() -> None:
    import re

    text = (
        '#define A_VERSION "12.5.1"\r\n# define B_VERSION 9  // nine\n#define C_VERSION ""\n'
        "#define D_VERSION(x) x\n//#define A_VERSION 1\n"
    )
    assert defines(text, re.compile(r"\w_VERSION")) == {"A_VERSION": "12.5.1", "B_VERSION": "9"}


@pytest.mark.parametrize(
    "text", ["", "build_info = {", "build_info = dict(a=1)", "build_info = f(open('x'))"]
)
def test_a_build_info_that_cannot_be_read(text: str) -> None:
    with pytest.raises(IntegrityError, match="build_info"):
        build_info(text)


def test_build_info_is_read_without_running_it() -> None:
    assert build_info("import os\nbuild_info = x([('b', True), ('a', 'y'), ('c', 1.5)])") == {
        "a": "y",
        "b": True,
    }


def test_metadata_without_requirements() -> None:
    assert metadata("Name: tensorflow\nVersion: 1\n\nRequires-Dist: x\n") == {
        "name": "tensorflow",
        "version": "1",
        "requires_python": "",
        "requires": [],
    }


@pytest.mark.parametrize(("number", "text"), [("12020", "12.2"), ("11080", "11.8"), ("12050", "12.5")])
def test_cuda_version(number: str, text: str) -> None:
    assert dotted(number) == text


def test_a_zip_bomb_is_not_unpacked() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a", b"\0" * (9 << 20))
    with pytest.raises(IntegrityError, match="claims"):
        tree(buffer.getvalue()).text("a")


def test_reading_ends_when_it_is_told_to(index: IndexServer) -> None:
    index.files["f"] = DATA
    file = remote(index, "f", len(DATA))
    file.stop.set()
    with pytest.raises(StoppedError):
        file.read(9)
    assert index.asked == []
