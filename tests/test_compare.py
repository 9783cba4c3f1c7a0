"""Two archives of one cell: which files differ, and in what."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny
import zstandard
from small import Members, file, folder, link, tarred
from tfenv.compare import differences, explain


def zstd(data: bytes, level: int = 3) -> bytes:
    return zstandard.ZstdCompressor(level=level).compress(data)


def zstd_frames(data: bytes) -> bytes:
    """Two frames one after the other, as some builders write."""
    return zstd(data[:700]) + zstd(data[700:])


def plain(data: bytes) -> bytes:
    return data


def gz(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


_KIND = {zstd: "tar+zstd", zstd_frames: "tar+zstd", gz: "tar+gzip", plain: "tar"}


def archive(path: Path, layers: Sequence[Members], pack: Any = zstd, env: Sequence[str] = ()) -> Path:
    """An OCI archive of these layers."""
    files: dict[str, bytes] = {}

    def put(data: bytes) -> dict[str, object]:
        files[f"blobs/{tiny.digest(data).replace(':', '/')}"] = data
        return {"digest": tiny.digest(data), "size": len(data)}

    raw = [tarred(layer) for layer in layers]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": list(env)},
        "rootfs": {"type": "layers", "diff_ids": [tiny.digest(layer) for layer in raw]},
    }
    media = f"application/vnd.oci.image.layer.v1.{_KIND[pack]}"
    manifest = {
        "schemaVersion": 2,
        "config": put(json.dumps(config).encode()),
        "layers": [{**put(pack(layer)), "mediaType": media} for layer in raw],
    }
    entry = {
        **put(json.dumps(manifest).encode()),
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "platform": {"architecture": "amd64", "os": "linux"},
    }
    files["index.json"] = json.dumps({"manifests": [entry]}).encode()
    files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    return tiny.tar(path, files)


SAME: Members = [folder("etc"), file("etc/same", b"s" * 1000)]


def told(tmp_path: Path, one: Members, two: Members, pack: Any = zstd) -> list[str]:
    """What is said of two images whose second layers are these."""
    first = archive(tmp_path / "1.tar", [SAME, one], pack)
    return list(differences(first, archive(tmp_path / "2.tar", [SAME, two], pack)))


@pytest.mark.parametrize("pack", [zstd, zstd_frames, gz, plain])
def test_layers_of_any_compression_are_read(tmp_path: Path, pack: Any) -> None:
    assert told(tmp_path, [file("a", b"1" * 900)], [file("a", b"2" * 900)], pack) == [
        "layer 2: a: content: no known cause"
    ]


CASES: dict[str, tuple[Members, Members, str]] = {
    "mode": ([file("a", mode=0o644)], [file("a", mode=0o755)], "a: mode (644 -> 755): no known cause"),
    "owner": ([file("a", uid=0)], [file("a", uid=1000)], "a: owner (0:0 -> 1000:0): owner"),
    "group": ([file("a", gid=0)], [file("a", gid=42)], "a: owner (0:0 -> 0:42): owner"),
    "time": ([file("a", mtime=1)], [file("a", mtime=2)], "a: time: time stamp"),
    "content": ([file("a", b"1")], [file("a", b"2")], "a: content: no known cause"),
    "link": ([link("a", "b")], [link("a", "c")], "a: link (b -> c): no known cause"),
    "two things": (
        [file("a", b"1", mtime=1)],
        [file("a", b"2", mtime=2)],
        "a: content, time: time stamp, and no known cause of content",
    ),
    "device": (
        [file("null", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3)],
        [file("null", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=5)],
        "null: device: no known cause",
    ),
    "only in the first": ([file("a"), file("b")], [file("a")], "b: presence (gone): no known cause"),
    "only in the second": ([file("a")], [file("a"), file("b")], "b: presence (new): no known cause"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_differs_is_named(tmp_path: Path, case: str) -> None:
    one, two, expected = CASES[case]
    assert told(tmp_path, one, two) == [f"layer 2: {expected}"]


def test_a_file_that_became_a_link(tmp_path: Path) -> None:
    (line,) = told(tmp_path, [file("a", b"x", mode=0o777)], [link("a", "b")])
    assert line.startswith(
        "layer 2: a: content, kind, link, mode (777 -> 644, file -> link, none -> b): no known"
    )


def test_extended_attributes_count(tmp_path: Path) -> None:
    def capable(path: Path, value: str) -> Path:
        info = tarfile.TarInfo("ping")
        info.pax_headers = {"SCHILY.xattr.security.capability": value}
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as layer:
            layer.addfile(info)
        return path

    packed = [capable(tmp_path / name, name).read_bytes() for name in ("one", "two")]
    images = []
    for number, raw in enumerate(packed):
        path = archive(tmp_path / f"{number}.tar", [[file(f"{number}")]], plain)
        images.append(_with_layer(path, raw))
    assert list(differences(*images)) == ["layer 1: ping: attributes: no known cause"]


def _with_layer(path: Path, raw: bytes) -> Path:
    """The archive with its one (plain) layer replaced."""
    config = {
        "architecture": "amd64",
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [tiny.digest(raw)]},
    }
    files = tiny.oci_files([])
    blob = json.dumps(config).encode()
    layer = {
        "digest": tiny.digest(raw),
        "size": len(raw),
        "mediaType": "application/vnd.oci.image.layer.v1.tar",
    }
    manifest = json.dumps(
        {"config": {"digest": tiny.digest(blob), "size": len(blob)}, "layers": [layer]}
    ).encode()
    index = json.loads(files["index.json"])
    index["manifests"][0] |= {"digest": tiny.digest(manifest), "size": len(manifest)}
    for data in (raw, blob, manifest):
        files[f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"] = data
    return tiny.tar(path, {**files, "index.json": json.dumps(index).encode()})


def test_the_same_files_packed_differently(tmp_path: Path) -> None:
    first = archive(tmp_path / "1.tar", [SAME], zstd)
    for number, pack in enumerate((gz, plain, zstd_frames)):
        second = archive(tmp_path / f"{number}b.tar", [SAME], pack)
        (line,) = differences(first, second)
        assert line.startswith("manifest: layer 1: compression (") and line.endswith("): compressor")


def test_the_same_files_in_another_order(tmp_path: Path) -> None:
    (line,) = told(tmp_path, [file("a"), file("b")], [file("b"), file("a")])
    assert line == "layer 2: as a whole: order: order"


def test_only_the_configuration(tmp_path: Path) -> None:
    first = archive(tmp_path / "1.tar", [SAME], env=["A=1"])
    second = archive(tmp_path / "2.tar", [SAME], env=["A=2"])
    assert list(differences(first, second)) == [
        'configuration: config.Env[0]: value ("A=1" -> "A=2"): no known cause'
    ]


def test_another_number_of_layers(tmp_path: Path) -> None:
    first = archive(tmp_path / "1.tar", [SAME])
    second = archive(tmp_path / "2.tar", [SAME, [file("a")]])
    assert differences(first, second) == (
        "files: a: presence (new): no known cause",
        "files: as a whole: layers (1 layers and 2): layers",
    )


def test_the_same_archive(tmp_path: Path) -> None:
    first, second = (archive(tmp_path / f"{n}.tar", [SAME, [file("a")]]) for n in (1, 2))
    assert list(differences(first, second)) == []
    assert explain(first, second) == "  nothing that is visible in the archives"


def test_a_long_list_is_cut_and_says_by_how_much(tmp_path: Path) -> None:
    one = [file(f"f{n:02}", b"1") for n in range(30)]
    two = [file(f"f{n:02}", b"2") for n in range(30)]
    text = explain(archive(tmp_path / "1.tar", [one]), archive(tmp_path / "2.tar", [two]))
    assert len(text.splitlines()) == 21
    assert text.splitlines()[0] == "  layer 1: f00: content: no known cause"
    assert text.endswith("... and 10 more")
