from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
import tiny
import zstandard
from small import file, folder, link, tarred
from tfenv import rootfs_unpack
from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.rootfs_unpack import unpack

ME = {"uid": os.getuid(), "gid": os.getgid()}
LOWER = tarred(
    [
        folder("usr", **ME),
        folder("usr/bin", **ME),
        file("usr/bin/env", b"old", **ME),
        file("usr/gone", **ME),
        folder("cache", **ME),
        file("cache/a", **ME),
        link("usr/link", "bin/env"),
    ]
)
UPPER = tarred(
    [
        file("usr/.wh.gone", b"", **ME),
        file("usr/bin/env", b"new", **ME),
        file("cache/.wh..wh..opq", b"", **ME),
        file("cache/b", **ME),
    ]
)
PACKS = {
    "application/vnd.oci.image.layer.v1.tar": lambda data: data,
    "application/vnd.oci.image.layer.v1.tar+gzip": gzip.compress,
    "application/vnd.oci.image.layer.v1.tar+zstd": zstandard.compress,
}


def archive(where: Path, kind: str = "application/vnd.oci.image.layer.v1.tar", *layers: bytes) -> Path:
    packed = [PACKS[kind](layer) for layer in layers or (LOWER, UPPER)]
    return tiny.tar(where / "image.tar", tiny.oci_files(packed, kind))


@pytest.mark.parametrize("kind", PACKS)
def test_layers_are_unpacked_one_over_the_other(tmp_path: Path, kind: str) -> None:
    image = unpack(archive(tmp_path, kind), tmp_path / "root")
    root = tmp_path / "root"
    found = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir())
    assert found == ["cache/b", "usr/bin/env", "usr/link"]
    assert (root / "usr/bin/env").read_text() == "new" and (root / "usr/link").is_symlink()
    assert image.digest.startswith("sha256:") and (tmp_path / "root.json").is_file()


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with pytest.raises(UsageError, match="is there already"):
        unpack(archive(tmp_path), tmp_path / "root")


def test_a_damaged_archive_leaves_nothing(tmp_path: Path) -> None:
    path = archive(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"old", b"odd"))
    with pytest.raises(IntegrityError):
        unpack(path, tmp_path / "root")
    assert {p.name for p in tmp_path.iterdir()} == {"image.tar"}


def test_a_layer_that_tar_cannot_unpack_leaves_nothing(tmp_path: Path) -> None:
    bad = tarred([file("usr", b"no folder", **ME)])
    with pytest.raises(NotReadyError, match="could not be unpacked"):
        unpack(archive(tmp_path, "application/vnd.oci.image.layer.v1.tar", LOWER, bad), tmp_path / "root")
    assert {p.name for p in tmp_path.iterdir()} == {"image.tar"}


def test_a_layer_may_not_remove_what_is_outside(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("x")
    (tmp_path / "root").mkdir()
    with pytest.raises(IntegrityError, match="outside of the image"):
        rootfs_unpack._remove(tmp_path / "root", "../.wh.victim")
    (tmp_path / "root/link").symlink_to(tmp_path)
    with pytest.raises(IntegrityError, match="outside of the image"):
        rootfs_unpack._remove(tmp_path / "root", "link/.wh.victim")
    assert (tmp_path / "victim").exists()


def test_a_host_without_tar_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(NotReadyError, match="no tar"):
        unpack(archive(tmp_path), tmp_path / "root")
