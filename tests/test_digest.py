"""A build held against what was recorded for its lock."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tfenv import digest
from tfenv.digest import Digest
from tfenv.errors import IntegrityError

BUILT = Digest(
    lock="a" * 64,
    manifest="sha256:" + "1" * 64,
    config="sha256:" + "2" * 64,
    diff_ids=("sha256:" + "3" * 64, "sha256:" + "4" * 64),
    compressed_bytes=10,
    engine="26.1.5",
    buildx="0.19.3",
)
OTHER = "sha256:" + "9" * 64


def test_the_four_answers() -> None:
    packed = replace(BUILT, manifest=OTHER)
    assert digest.compare(BUILT, BUILT) == "identical"
    assert digest.compare(BUILT, packed) == "same content"
    assert digest.compare(BUILT, replace(packed, config=OTHER)) == "different"
    assert digest.compare(BUILT, replace(packed, diff_ids=(OTHER,))) == "different"
    assert digest.compare(BUILT, None) == "not recorded"


def test_what_was_recorded_for_another_lock_says_nothing() -> None:
    assert digest.compare(BUILT, replace(BUILT, lock="b" * 64)) == "not recorded"
    assert digest.compare(BUILT, replace(BUILT, lock="b" * 64, manifest=OTHER)) == "not recorded"


def test_the_builders_versions_and_the_size_do_not_count() -> None:
    assert digest.compare(BUILT, replace(BUILT, engine="29", buildx="", compressed_bytes=0)) == "identical"


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    text = digest.dump(BUILT)
    assert text == digest.dump(BUILT)
    assert list(json.loads(text)) == sorted(json.loads(text))
    (tmp_path / digest.FILE_NAME).write_text(text)
    assert digest.read(tmp_path) == BUILT


def test_a_folder_without_it_has_none(tmp_path: Path) -> None:
    assert digest.read(tmp_path) is None
    assert digest.read(tmp_path / "none") is None


BROKEN = {
    "empty": "",
    "cut off": digest.dump(BUILT)[:100],
    "a list": "[]",
    "null": "null",
    "a key too few": '{"lock": "x"}',
    "a key too many": json.dumps({**json.loads(digest.dump(BUILT)), "more": 1}),
    "no layers": json.dumps({**json.loads(digest.dump(BUILT)), "diff_ids": None}),
    "not UTF-8": "\udcff",
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_damaged_one_is_named(tmp_path: Path, what: str) -> None:
    (tmp_path / digest.FILE_NAME).write_bytes(BROKEN[what].encode("utf-8", "surrogateescape"))
    with pytest.raises(IntegrityError, match=digest.FILE_NAME) as caught:
        digest.read(tmp_path)
    assert "git checkout" in caught.value.remedy
