from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

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


def test_an_image_without_usr_is_none_with_a_tensorflow(tmp_path: Path) -> None:
    bare = tarred([folder("bin", **ME), file("bin/say", **ME)])
    kind = "application/vnd.oci.image.layer.v1.tar"
    with pytest.raises(UsageError, match="the image has no /usr: it is no image with a TensorFlow"):
        unpack(archive(tmp_path, kind, bare), tmp_path / "root")
    assert {p.name for p in tmp_path.iterdir()} == {"image.tar"}


def test_an_image_whose_configuration_is_wrong_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(_folder: Path) -> None:
        raise UsageError("wrong", remedy="x")

    monkeypatch.setattr(rootfs_unpack, "read_unpacked", wrong)
    with pytest.raises(UsageError, match="wrong"):
        unpack(archive(tmp_path), tmp_path / "root")
    assert {p.name for p in tmp_path.iterdir()} == {"image.tar"}


def test_an_image_with_attestations_has_the_digest_that_the_engine_calls_it_by(tmp_path: Path) -> None:
    kind = "application/vnd.oci.image.layer.v1.tar"
    files = tiny.oci_files([LOWER], kind)
    inner = json.loads(files["index.json"])
    attested = {**inner["manifests"][0], "platform": {"os": "unknown", "architecture": "unknown"}}
    data = json.dumps({**inner, "manifests": [*inner["manifests"], attested]}).encode()
    files[f"blobs/sha256/{tiny.digest(data)[7:]}"] = data
    index = "application/vnd.oci.image.index.v1+json"
    outer = {"digest": tiny.digest(data), "size": len(data), "mediaType": index}
    files["index.json"] = json.dumps({"manifests": [outer]}).encode()
    image = unpack(tiny.tar(tmp_path / "image.tar", files), tmp_path / "root")
    assert image.digest == tiny.digest(data)
    assert json.loads((tmp_path / "root.json").read_text())["manifest"] == image.digest


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


@pytest.mark.parametrize("target", ["/", "../..", "../../.."])
def test_a_layer_may_not_write_through_a_link_of_a_lower_one(tmp_path: Path, target: str) -> None:
    lower = tarred([folder("usr", **ME), link("usr/out", target)])
    upper = tarred([file(f"usr/out/{str(tmp_path).lstrip('/')}/victim", b"x", **ME)])
    kind = "application/vnd.oci.image.layer.v1.tar"
    with pytest.raises(IntegrityError, match="outside of the image"):
        unpack(archive(tmp_path, kind, lower, upper), tmp_path / "root")
    assert {p.name for p in tmp_path.iterdir()} == {"image.tar"}


def test_a_layer_may_write_through_a_link_within(tmp_path: Path) -> None:
    lower = tarred([folder("usr", **ME), folder("usr/lib", **ME), link("lib", "usr/lib")])
    kind = "application/vnd.oci.image.layer.v1.tar"
    unpack(archive(tmp_path, kind, lower, tarred([file("lib/x", b"x", **ME)])), tmp_path / "root")
    assert (tmp_path / "root/usr/lib/x").read_text() == "x"


def test_a_tar_that_has_much_to_say_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that finds every file's time in the future."""
    tools = tmp_path / "tools"
    tools.mkdir()
    real = shutil.which("tar")
    (tools / "tar").write_text(
        f"#!/bin/sh\nyes 'tar: x: time stamp is in the future' | head -c 300000 >&2\nexec {real} \"$@\"\n"
    )
    (tools / "tar").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    unpack(archive(tmp_path), tmp_path / "root")
    assert (tmp_path / "root/usr/bin/env").read_text() == "new"


def test_a_folder_without_its_description_is_no_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root.json").write_text("of an older one")

    def full(*_: object) -> None:
        raise NotReadyError("full", remedy="r")

    monkeypatch.setattr(rootfs_unpack, "write_all", full)
    with pytest.raises(NotReadyError, match="full"):
        unpack(archive(tmp_path), tmp_path / "root")
    assert {p.name for p in tmp_path.iterdir()} == {"image.tar"}


def alone(*argv: object, **more: Any) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "tfenv.rootfs_unpack", *map(str, argv)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **more)


def test_the_module_is_a_command(tmp_path: Path) -> None:
    path = archive(tmp_path)
    assert alone(path, tmp_path / "root").returncode == 0
    done = alone(path, tmp_path / "root")
    assert done.returncode == 2 and "-> remove it" in done.stderr
    for argv, code in (((), 2), ((path,), 2), ((tmp_path / "none", tmp_path / "x"), 1)):
        done = alone(*argv)
        assert done.returncode == code and "Traceback" not in done.stderr and done.stderr
    done = alone(path, "/proc/none/x")
    assert done.returncode == 4 and "Traceback" not in done.stderr


def test_a_kill_leaves_nothing_half_unpacked(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "tar").write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\nexec sleep 600\n")
    (tools / "tar").chmod(0o755)
    line = [sys.executable, "-m", "tfenv.rootfs_unpack", str(archive(tmp_path)), str(tmp_path / "root")]
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    process = subprocess.Popen(line, env=env, stderr=subprocess.PIPE)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert process.wait(60) == 143 and process.stderr is not None and process.stderr.read() == b""
    assert {p.name for p in tmp_path.iterdir()} == {"image.tar", "tools", "begun"}
