"""Which image a folder holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tfenv.errors import UsageError
from tfenv.unpacked import Unpacked, read_unpacked

DIGEST = "sha256:" + "ab" * 32


def unpack_here(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "usr/bin/env").write_text("")
    (folder / "etc").mkdir()
    (folder / "etc/passwd").write_text("root:x:0:0::/:\nbroken\ntfenv:x:1000:1001::/home/tfenv:/bin/bash\n")
    config = {"Env": ["PATH=/opt/bin:/bin", "LANG=C.UTF-8"], "User": "tfenv", "WorkingDir": "/home/tfenv"}
    text = "a line before it\n" + json.dumps({"manifest": DIGEST, "config": config}) + "\n"
    (tmp_path / "root.json").write_text(text)
    return folder


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    return unpack_here(tmp_path)


def test_an_unpacked_image_knows_digest_environment_and_user(unpacked: Path) -> None:
    image = read_unpacked(unpacked)
    assert (image.digest, image.env["LANG"], image.workdir) == (DIGEST, "C.UTF-8", "/home/tfenv")
    assert image.owner == (1000, 1001)


@pytest.mark.parametrize("name", [".", "../root", "usr/.."])
def test_the_folder_may_be_named_from_within(
    unpacked: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(unpacked)
    assert read_unpacked(Path(name)).digest == DIGEST


@pytest.mark.parametrize(
    ("user", "owner"),
    [("", (0, 0)), ("1000", (1000, 1001)), ("7", (7, 7)), ("7:8", (7, 8)), ("tfenv:9", (1000, 9))],
)
def test_the_owner_is_the_configs_user(unpacked: Path, user: str, owner: tuple[int, int]) -> None:
    assert Unpacked(folder=unpacked, digest=DIGEST, user=user).owner == owner


def test_a_folder_that_is_no_image_says_what_to_type(unpacked: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no unpacked image"):
        read_unpacked(tmp_path)
    nameless = [json.dumps(one) for one in ({"manifest": DIGEST}, {"manifest": DIGEST, "config": []})]
    for text in ("", "[]", "{}", '{"manifest": "latest", "config": {}}', "[" * 100_000, *nameless):
        (tmp_path / "root.json").write_text(text)
        with pytest.raises(UsageError, match="does not tell which image") as error:
            read_unpacked(unpacked)
        assert "tfenv.rootfs_unpack" in error.value.remedy
        assert "Error" not in error.value.message, "in words"
    (tmp_path / "root.json").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="does not tell which image"):
        read_unpacked(unpacked)


def test_a_file_that_is_missing_is_called_missing(unpacked: Path, tmp_path: Path) -> None:
    (tmp_path / "root.json").rename(tmp_path / "other.json")
    assert read_unpacked(unpacked, tmp_path / "other.json").digest == DIGEST
    with pytest.raises(UsageError, match=r"root\.json is missing") as error:
        read_unpacked(unpacked)
    assert error.value.remedy.startswith("copy it along with the folder; or unpack")


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "it is empty"), ("{", "its last line is no JSON"), ("{}", "it has no 'config'")],
)
def test_what_is_wrong_with_the_file_is_said(unpacked: Path, tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "root.json").write_text(text)
    with pytest.raises(UsageError, match=why):
        read_unpacked(unpacked)
