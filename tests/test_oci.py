from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tfenv import oci
from tfenv.errors import IntegrityError
from tfenv.oci import describe, require_compression, verify_blobs
from tiny import digest, oci_files, tar


def test_what_an_archive_holds(tmp_path):
    files = oci_files()
    archive = describe(tar(tmp_path / "a.tar", files))
    entry = json.loads(files["index.json"])["manifests"][0]
    assert archive.manifest_digest == archive.digest == entry["digest"]
    assert [layer.digest for layer in archive.layers] == [digest(b"layer one"), digest(b"layer two")]
    assert archive.diff_ids == (digest(b"raw layer one"), digest(b"raw layer two"))
    assert archive.layers[0].size == 9 and archive.layers[0].media_type == "application/layer"
    config = files[f"blobs/sha256/{archive.config_digest.removeprefix('sha256:')}"]
    assert archive.compressed_size == 18 + len(config)
    assert archive.labels == {"a": "b"}
    verify_blobs(tmp_path / "a.tar")


def test_a_nested_index_is_followed_and_attestations_are_not_images(tmp_path):
    files = oci_files()
    inner = json.loads(files["index.json"])
    inner["manifests"].append(
        {**inner["manifests"][0], "platform": {"os": "unknown", "architecture": "unknown"}}
    )
    data = json.dumps(inner).encode()
    files[f"blobs/sha256/{digest(data)[7:]}"] = data
    outer = {
        "digest": digest(data),
        "size": len(data),
        "mediaType": "application/vnd.oci.image.index.v1+json",
    }
    files["index.json"] = json.dumps({"manifests": [outer]}).encode()
    archive = describe(tar(tmp_path / "a.tar", files))
    assert archive.manifest_digest == inner["manifests"][0]["digest"]
    assert archive.digest == digest(data)  # as `docker image inspect` calls it


def wrong(path, match):
    with pytest.raises(IntegrityError, match=match) as caught:
        describe(path)
    assert "tfenv build" in caught.value.remedy


def test_missing_empty_and_foreign_files(tmp_path):
    wrong(tmp_path / "none.tar", "is missing")
    (tmp_path / "empty.tar").write_bytes(b"")
    wrong(tmp_path / "empty.tar", "not a usable OCI archive")
    (tmp_path / "text.tar").write_bytes(b"hello " * 1000)
    wrong(tmp_path / "text.tar", "not a usable OCI archive")
    wrong(tar(tmp_path / "docker.tar", {"manifest.json": b"[]"}), "oci-layout is missing")


def test_truncated_anywhere(tmp_path):
    whole = tar(tmp_path / "a.tar", oci_files((b"x" * 5000, b"y" * 5000))).read_bytes()
    used = len(whole.rstrip(b"\0"))
    for cut in range(0, used, 700):
        (tmp_path / "cut.tar").write_bytes(whole[:cut])
        wrong(tmp_path / "cut.tar", "not a usable OCI archive")


def test_a_missing_or_resized_blob(tmp_path):
    files = oci_files()
    layer = f"blobs/sha256/{digest(b'layer one')[7:]}"
    wrong(tar(tmp_path / "a.tar", {k: v for k, v in files.items() if k != layer}), "is missing")
    wrong(tar(tmp_path / "b.tar", {**files, layer: b"layer one!"}), "10 bytes, not 9")


def test_a_changed_layer_is_found_on_request(tmp_path):
    layer = f"blobs/sha256/{digest(b'layer one')[7:]}"
    path = tar(tmp_path / "a.tar", {**oci_files(), layer: b"layer 0ne"})
    describe(path)
    with pytest.raises(IntegrityError, match="own hash"):
        verify_blobs(path)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_whichever_blob_is_changed_is_named(tmp_path, at):
    files = oci_files((b"x" * 3_000_000, b"y" * 100, b"z" * 2_000_000))
    name = [name for name in files if name.startswith("blobs/")][at]
    files[name] = files[name][:-1] + b"!"
    with pytest.raises(IntegrityError, match=f"{name} does not have its own hash"):
        verify_blobs(tar(tmp_path / "a.tar", files))


def test_members_may_begin_with_a_dot(tmp_path):
    files = {f"./{name}": data for name, data in oci_files().items()}
    describe(tar(tmp_path / "a.tar", files))
    verify_blobs(tmp_path / "a.tar")


def test_layers_compressed_another_way_are_refused(tmp_path):
    found = describe(tar(tmp_path / "a.tar", oci_files()))
    tar_type = "application/vnd.oci.image.layer.v1.tar"
    zstd, gzip, plain = (
        tuple(replace(layer, media_type=kind) for layer in found.layers)
        for kind in (f"{tar_type}+zstd", f"{tar_type}+gzip", tar_type)
    )
    require_compression(replace(found, layers=zstd), "zstd")
    require_compression(replace(found, layers=gzip), "gzip")
    for layers in ((zstd[0], gzip[1]), (plain[0], zstd[1])):
        with pytest.raises(IntegrityError, match="not compressed by zstd") as caught:
            require_compression(replace(found, layers=layers), "zstd")
        assert "docker builder prune" in caught.value.remedy and "tfenv build" in caught.value.remedy


def test_a_changed_manifest_is_always_found(tmp_path):
    files = oci_files()
    name = f"blobs/sha256/{json.loads(files['index.json'])['manifests'][0]['digest'][7:]}"
    files[name] = files[name].replace(b"layer", b"lay3r")
    wrong(tar(tmp_path / "a.tar", files), "own hash")


@pytest.mark.parametrize(
    ("index", "match"),
    [
        (b"[]", "not a JSON object"),
        (b"{", "not JSON"),
        (b"{}", "0 images"),
        (b'{"manifests": [{"digest": "sha256:../../etc/passwd"}]}', "not a sha256 digest"),
    ],
)
def test_a_bad_index(tmp_path, index, match):
    wrong(tar(tmp_path / "a.tar", {**oci_files(), "index.json": index}), match)


def test_another_platform_and_two_images(tmp_path):
    path = tar(tmp_path / "a.tar", oci_files())
    with pytest.raises(IntegrityError, match="0 images for linux/arm64"):
        describe(path, platform="linux/arm64")
    files = oci_files()
    index = json.loads(files["index.json"])
    index["manifests"] *= 2
    files["index.json"] = json.dumps(index).encode()
    wrong(tar(tmp_path / "b.tar", files), "2 images")


def test_a_layout_is_unpacked_and_nothing_else(tmp_path):
    files = oci_files()
    stray = {"../evil": b"", "blobs/sha256/../../evil": b"", "manifest.json": b"[]", "blobs/sha256/x": b""}
    found = oci.unpack(tar(tmp_path / "a.tar", {**files, **stray}), tmp_path / "all")
    assert found == set(files)
    written = {p.relative_to(tmp_path / "all").as_posix(): p for p in (tmp_path / "all").rglob("*")}
    assert {name: path.read_bytes() for name, path in written.items() if path.is_file()} == files
    assert not (tmp_path / "evil").exists()
    (tmp_path / "one").mkdir()
    assert oci.unpack(tmp_path / "a.tar", tmp_path / "one", "oci-layout".__eq__) == {"oci-layout"}
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["oci-layout"]
