"""A build held against what was recorded for its inputs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tfenv import digest
from tfenv.digest import Digest
from tfenv.errors import IntegrityError

BUILT = Digest(
    inputs="a" * 64,
    lock="b" * 64,
    manifest="sha256:" + "1" * 64,
    config="sha256:" + "2" * 64,
    diff_ids=("sha256:" + "3" * 64, "sha256:" + "4" * 64),
    layer_bytes=(6, 4),
    builder="Docker Engine 26.1.5",
)
OTHER = "sha256:" + "9" * 64


def test_the_four_answers() -> None:
    packed = replace(BUILT, manifest=OTHER)
    assert digest.compare(BUILT, BUILT) == "identical"
    assert digest.compare(BUILT, packed) == "same content"
    assert digest.compare(BUILT, replace(packed, config=OTHER)) == "different"
    assert digest.compare(BUILT, replace(packed, diff_ids=(OTHER,))) == "different"
    assert digest.compare(BUILT, None) == "not recorded"


def test_what_was_recorded_for_other_inputs_says_nothing() -> None:
    other = replace(BUILT, inputs="c" * 64)
    assert digest.compare(BUILT, other) == "not recorded", "a recipe may change though the lock does not"
    assert digest.compare(BUILT, replace(other, manifest=OTHER)) == "not recorded"


def test_only_the_inputs_say_what_belongs_together() -> None:
    assert digest.compare(BUILT, replace(BUILT, lock="c" * 64)) == "identical"


def test_the_builder_and_the_size_do_not_count() -> None:
    assert digest.compare(BUILT, replace(BUILT, builder="BuildKit v1", layer_bytes=(0, 0))) == "identical"


# What is refused.

PACKED = replace(BUILT, manifest=OTHER)
CHANGED = replace(PACKED, diff_ids=(OTHER,))


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        BUILT,
        replace(BUILT, builder="BuildKit v1"),
        replace(BUILT, inputs="c" * 64),
        replace(CHANGED, inputs="c" * 64),
    ],
    ids=["none", "identical", "identical by another builder", "other inputs", "other inputs and content"],
)
def test_what_is_as_recorded_or_was_never_recorded_says_nothing(recorded: Digest | None) -> None:
    assert digest.require_likeness(BUILT, recorded, "cell") == ""


@pytest.mark.parametrize(("recorded", "what"), [(PACKED, "same content"), (CHANGED, "different")])
def test_another_builder_is_told_with_both_names(recorded: Digest, what: str) -> None:
    text = digest.require_likeness(BUILT, replace(recorded, builder="BuildKit 0.20.0"), "cell")
    for word in ("cell", "Docker Engine 26.1.5", "BuildKit 0.20.0", BUILT.manifest, OTHER, what):
        assert word in text


@pytest.mark.parametrize("recorded", [PACKED, CHANGED], ids=["same content", "different"])
def test_the_same_builder_has_to_give_the_same_digest(recorded: Digest) -> None:
    with pytest.raises(IntegrityError, match="no tag was moved") as caught:
        digest.require_likeness(BUILT, recorded, "cell")
    assert BUILT.manifest in caught.value.message and OTHER in caught.value.message
    assert "--check-reproducible cell" in caught.value.remedy and "--record" in caught.value.remedy


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
    "no inputs": json.dumps({k: v for k, v in json.loads(digest.dump(BUILT)).items() if k != "inputs"}),
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
