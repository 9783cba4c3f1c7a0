"""A builder hands over only what is not here yet; the archive that is put together holds all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny
from tfenv import handover, oci
from tfenv.errors import IntegrityError

LAYERS = (b"layer one", b"layer two")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tiny.tar(tmp_path / "base.tar", tiny.oci_files(LAYERS))


def hand_over(folder: Path, files: dict[str, bytes]) -> None:
    """As a builder does: what is there already is left as it is."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(data)


def test_the_output_becomes_a_folder_in_which_the_layers_seem_to_be(tmp_path: Path, base: Path) -> None:
    argv = ["docker", "--output", f"type=oci,dest={tmp_path}/o.tar,x=y", "--output", "type=image,name=n"]
    made = handover.into_folder(argv, tmp_path / "o.tar", tmp_path / "f", base)
    assert made == [*argv[:2], f"type=oci,dest={tmp_path}/f,x=y,tar=false", *argv[3:]]
    there = {path.name: path.stat().st_size for path in (tmp_path / "f/blobs/sha256").iterdir()}
    assert there == {tiny.digest(layer)[7:]: 0 for layer in LAYERS}


def test_the_archive_holds_all_that_the_builder_would_have_written(tmp_path: Path, base: Path) -> None:
    files = tiny.oci_files((*LAYERS, b"the team's"))
    handover.into_folder(["--output", str(tmp_path / "o.tar")], tmp_path / "o.tar", tmp_path / "f", base)
    hand_over(tmp_path / "f", files)
    handover.pack(tmp_path / "f", base, tmp_path / "o.tar")
    oci.verify_blobs(tmp_path / "o.tar")
    whole = tiny.tar(tmp_path / "whole.tar", files)
    assert oci.describe(tmp_path / "o.tar").manifest_digest == oci.describe(whole).manifest_digest
    assert not (tmp_path / "f").exists()


def test_a_builder_that_hands_over_everything_is_believed(tmp_path: Path, base: Path) -> None:
    files = tiny.oci_files((*LAYERS, b"the team's"))
    hand_over(tmp_path / "f", files)
    handover.pack(tmp_path / "f", base, tmp_path / "o.tar")
    oci.verify_blobs(tmp_path / "o.tar")


def test_a_blob_that_nobody_has_is_found_missing(tmp_path: Path, base: Path) -> None:
    files = tiny.oci_files((*LAYERS, b"the team's"))
    digest = tiny.digest(b"the team's")[7:]
    hand_over(tmp_path / "f", {name: b"" if digest in name else data for name, data in files.items()})
    handover.pack(tmp_path / "f", base, tmp_path / "o.tar")
    with pytest.raises(IntegrityError):
        oci.describe(tmp_path / "o.tar")


def test_the_same_is_packed_the_same_way(tmp_path: Path, base: Path) -> None:
    for name in ("a", "b"):
        hand_over(tmp_path / name, tiny.oci_files(LAYERS))
        handover.pack(tmp_path / name, base, tmp_path / f"{name}.tar")
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    assert json.loads(tiny.oci_files(LAYERS)["index.json"])
