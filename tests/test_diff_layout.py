"""The image in a layout: in a folder, an archive, a stream; and what is wrong with one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import image_files
import pytest
from tfenv.diff.layout import Image, read_image
from tfenv.diff.model import Layer
from tfenv.diff.places import Folder, archive
from tfenv.diff.stream import Streamed
from tfenv.errors import IntegrityError, UsageError

Read = Callable[..., Image]
LAYERS = (image_files.layer({"a": b"1"}), image_files.layer({"b": b"2"}, "gzip"))


def in_folder(at: Path, files: dict[str, bytes], reference: str = "") -> Image:
    return read_image(Folder(image_files.folder(at / "layout", files)), "it", reference)


def in_archive(at: Path, files: dict[str, bytes], reference: str = "") -> Image:
    path = at / "a.tar"
    path.write_bytes(image_files.tar(files))
    with archive(path) as opened:
        return read_image(opened, "it", reference)


def streamed(at: Path, files: dict[str, bytes], reference: str = "") -> Image:
    chunks = image_files.chunks(image_files.tar(files))
    return read_image(Streamed(chunks, "it", lambda _, make: make()), "it", reference)


everywhere = pytest.mark.parametrize("read", [in_folder, in_archive, streamed])


@everywhere
def test_the_layers_of_an_image_in_their_order(tmp_path: Path, read: Read) -> None:
    found = read(tmp_path, image_files.image([*LAYERS, LAYERS[0]], {"User": "1"}))
    assert [set(layer.entries) for layer in found.layers] == [{"a"}, {"b"}, {"a"}]
    assert found.config["config"] == {"User": "1"}
    assert found.digest.startswith("sha256:")
    assert [of.size for of in found.stored] == [len(LAYERS[0]), len(LAYERS[1]), len(LAYERS[0])]


@everywhere
def test_one_of_several_is_named(tmp_path: Path, read: Read) -> None:
    files = image_files.layout(
        image_files.blobs(LAYERS[:1], name="one"), image_files.blobs(LAYERS[1:], name="two")
    )
    assert set(read(tmp_path, files, "two").layers[0].entries) == {"b"}
    with pytest.raises(UsageError, match="several images: one, two"):
        read(tmp_path, files)
    with pytest.raises(UsageError, match="no image three"):
        read(tmp_path, files, "three")


@everywhere
def test_attestations_are_no_images_and_of_platforms_ours_is_taken(tmp_path: Path, read: Read) -> None:
    ours, descriptor = image_files.blobs(LAYERS[:1])
    other, foreign = image_files.blobs(LAYERS[1:])
    descriptor["platform"] = {"os": "linux", "architecture": "amd64"}
    foreign["platform"] = {"os": "linux", "architecture": "arm64"}
    attestation = {**foreign, "digest": "sha256:" + "0" * 64, "platform": {"os": "unknown"}}
    inner = json.dumps({"manifests": [foreign, descriptor, attestation]}).encode()
    name = image_files.digest(inner)
    outer = {"digest": name, "size": len(inner), "mediaType": "application/vnd.oci.image.index.v1+json"}
    files = image_files.layout(({**ours, **other, f"blobs/sha256/{name[7:]}": inner}, outer))
    assert set(read(tmp_path, files).layers[0].entries) == {"a"}
    (tmp_path / "alone").mkdir()
    alone = image_files.layout((other, foreign))  # the only one is meant, whatever its platform
    assert set(read(tmp_path / "alone", alone).layers[0].entries) == {"b"}


@everywhere
@pytest.mark.parametrize(("deep", "right"), [(3, True), (9, False)])
def test_indexes_in_each_other(tmp_path: Path, read: Read, deep: int, right: bool) -> None:
    files, descriptor = image_files.blobs(LAYERS)
    for _ in range(deep):
        index = json.dumps({"manifests": [descriptor]}).encode()
        name = image_files.digest(index)
        files[f"blobs/sha256/{name[7:]}"] = index
        descriptor = {"digest": name, "mediaType": "application/vnd.oci.image.index.v1+json"}
    whole = image_files.layout((files, descriptor))
    if right:
        assert len(read(tmp_path, whole).layers) == 2
        return
    with pytest.raises(IntegrityError, match="without end"):
        read(tmp_path, whole)


@everywhere
def test_a_document_that_was_changed_is_found(tmp_path: Path, read: Read) -> None:
    files = image_files.image(LAYERS, {"User": "1000"})
    (name,) = [name for name, data in files.items() if b'"User": "1000"' in data]
    with pytest.raises(IntegrityError, match="its own hash"):
        read(tmp_path, {**files, name: files[name].replace(b"1000", b"0000")})


@everywhere
@pytest.mark.parametrize("what", ["layer", "config", "manifest"])
def test_a_part_that_is_missing_is_named(tmp_path: Path, read: Read, what: str) -> None:
    files = image_files.image(LAYERS)
    index = json.loads(files["index.json"])
    manifest_name = "blobs/sha256/" + index["manifests"][0]["digest"][7:]
    manifest = json.loads(files[manifest_name])
    gone = {
        "layer": "blobs/sha256/" + manifest["layers"][0]["digest"][7:],
        "config": "blobs/sha256/" + manifest["config"]["digest"][7:],
        "manifest": manifest_name,
    }[what]
    del files[gone]
    with pytest.raises(IntegrityError, match=gone):
        read(tmp_path, files)


@everywhere
@pytest.mark.parametrize(
    "index",
    [
        b"no json",
        b"[]",
        b'{"manifests": 1}',
        b'{"manifests": []}',
        b'{"manifests": [1]}',
        b'{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}',
        b'{"manifests": [{"digest": 5}]}',
        b"[" * 100_000,
    ],
)
def test_an_index_that_is_none(tmp_path: Path, read: Read, index: bytes) -> None:
    with pytest.raises(IntegrityError):
        read(tmp_path, {**image_files.image(LAYERS), "index.json": index})


@everywhere
def test_what_is_no_layout(tmp_path: Path, read: Read) -> None:
    with pytest.raises(IntegrityError, match="no OCI layout"):
        read(tmp_path, {"readme": b"hello"})


@everywhere
def test_an_archive_of_an_old_engine(tmp_path: Path, read: Read) -> None:
    plain = image_files.layer({"a": b"1"}, "")
    config = {"config": {"User": "7"}, "rootfs": {"diff_ids": ["sha256:x"]}}
    told = [{"Config": "c.json", "RepoTags": ["old:1"], "Layers": ["abc/layer.tar"]}]
    files = {"abc/VERSION": b"1.0", "abc/layer.tar": plain, "c.json": json.dumps(config).encode()}
    files["manifest.json"] = json.dumps(told).encode()
    found = read(tmp_path, files)
    assert (found.digest, found.config["config"]) == ("", {"User": "7"})
    assert set(found.layers[0].entries) == {"a"}
    with pytest.raises(UsageError, match="old:1"):
        read(tmp_path, files, "new:1")


def test_what_is_no_tar(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"no tar" * 1000)
    with pytest.raises(IntegrityError, match="not a usable image"), archive(tmp_path / "a"):
        raise AssertionError
    with pytest.raises(IntegrityError, match="not a usable image"):
        Streamed([b"no tar" * 1000], "it", lambda _, make: make())


def test_a_stream_of_documents_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from tfenv.diff import stream

    files = {f"x{n}": b"{" + bytes(1000) for n in range(20)}
    monkeypatch.setattr(stream, "_DOCUMENTS_MAX", 10_000)
    with pytest.raises(IntegrityError, match="of documents"):
        Streamed(image_files.chunks(image_files.tar(files)), "it", lambda _, make: make())


def test_members_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tfenv.diff import places

    data = image_files.tar({f"x{n}": b"" for n in range(20)})
    (tmp_path / "a.tar").write_bytes(data)
    monkeypatch.setattr(places, "_MOST_MEMBERS", 10)
    with pytest.raises(IntegrityError, match="members"), archive(tmp_path / "a.tar"):
        raise AssertionError
    with pytest.raises(IntegrityError, match="members"):
        Streamed(image_files.chunks(data), "it", lambda _, make: make())


@everywhere
def test_a_blob_that_is_no_layer_of_the_image_does_no_harm(tmp_path: Path, read: Read) -> None:
    data = b"neither a tar nor JSON"
    files = {**image_files.image(LAYERS), f"blobs/sha256/{image_files.digest(data)[7:]}": data}
    assert len(read(tmp_path, files).layers) == 2


@everywhere
def test_a_layer_of_the_image_that_is_damaged_is_named(tmp_path: Path, read: Read) -> None:
    files = image_files.image(LAYERS)
    name = f"blobs/sha256/{image_files.digest(LAYERS[0])[7:]}"
    with pytest.raises(IntegrityError, match="cannot be read"):
        read(tmp_path, {**files, name: LAYERS[0][:-9] + bytes(9)})


def test_a_link_out_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    files = image_files.image(LAYERS)
    at = image_files.folder(tmp_path / "layout", files)
    (tmp_path / "outside").write_bytes(files["index.json"])
    (at / "index.json").unlink()
    (at / "index.json").symlink_to(tmp_path / "outside")
    with pytest.raises(IntegrityError, match="no OCI layout"):
        read_image(Folder(at), "it")


def test_a_layer_that_is_known_is_not_read_again(tmp_path: Path) -> None:
    known = Layer({}, {}, 0)
    asked: list[str] = []

    def recall(sha256: str, make: object) -> Layer:
        asked.append(sha256)
        return known

    at = image_files.folder(tmp_path, image_files.image(LAYERS))
    for path in (at / "blobs" / "sha256").iterdir():
        if path.read_bytes() in LAYERS:
            path.write_bytes(b"gone")
    assert read_image(Folder(at), "it", recall=recall).layers == (known, known)
    assert sorted(asked) == sorted(image_files.digest(data)[7:] for data in LAYERS)
