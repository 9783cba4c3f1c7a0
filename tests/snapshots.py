"""Snapshots for tests: bundles in folders, and what commands say of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import small
import tiny
from tfenv.snapshot.descriptors import Manifest
from tfenv.snapshot.format import Builder, Expected, Snapshot
from tfenv.snapshot.layout import Layout

Tell = Callable[..., tuple[int, str, str]]


def data(told: tuple[int, str, str], code: int = 0) -> Any:
    """The one JSON document that was printed."""
    assert told[0] == code, told
    (line,) = told[1].splitlines()
    return json.loads(line)


def bundle(folder: Path, number: int = -1) -> tuple[Layout, Manifest]:
    """A snapshot of a folder, the newest by default."""
    layout = Layout(folder)
    return layout, layout.manifest(layout.snapshots()[number])


def titles(manifest: Manifest) -> set[str]:
    """The files that a snapshot holds."""
    return {file.title for file in manifest.files}


def oci_archive(
    path: Path,
    layers: Sequence[bytes],
    *,
    kind: str = "zstd",
    config: Mapping[str, object] | None = None,
    indent: int | None = None,
) -> Path:
    """An OCI archive of these layers (tar archives), its diff ids the true ones."""
    files: dict[str, bytes] = {}

    def put(content: bytes) -> dict[str, object]:
        files[f"blobs/{tiny.digest(content).replace(':', '/')}"] = content
        return {"digest": tiny.digest(content), "size": len(content)}

    diff_ids = [tiny.digest(layer) for layer in layers]
    document = {
        "architecture": "amd64",
        "os": "linux",
        "created": "2024-01-01T00:00:00Z",
        "config": {"Env": ["A=1"]},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        **(config or {}),
    }
    media = f"application/vnd.oci.image.layer.v1.tar+{kind}"
    manifest = {
        "schemaVersion": 2,
        "config": put(json.dumps(document, indent=indent).encode()),
        "layers": [{**put(small.PACK[kind](layer)), "mediaType": media} for layer in layers],
    }
    entry = {
        **put(json.dumps(manifest).encode()),
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "platform": {"architecture": "amd64", "os": "linux"},
    }
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    return tiny.tar(path, files)


SNAPSHOT = Snapshot(
    cell="2.15.1-cu12.2-cudnn8.9-py3.11-debian12",
    platform="linux/amd64",
    lock="1" * 64,
    inputs="2" * 64,
    locked=True,
    epoch=1710892800,
    export=("compression=zstd", "compression-level=7"),
    contexts=(),
    stand_in="",
    template="3" * 64,
    tfenv="0.1.0",
    builder=Builder(name="Docker Engine 26.1.5", engine="26.1.5", buildx="0.19.3"),
    expected=Expected(
        tree=f"sha256:{'4' * 64}",
        diff_ids=(f"sha256:{'5' * 64}",),
        config=f"sha256:{'6' * 64}",
        manifest=f"sha256:{'7' * 64}",
        layer_bytes=(16,),
    ),
)


def rename(folder: Path, title: str, name: str) -> None:
    """Give a file of the newest snapshot another name, with all hashes right, as an attacker would."""
    layout, manifest = bundle(folder)
    change(layout, lambda text: text.replace(json.dumps(title), json.dumps(name)))
    assert manifest.by_title[title]


def change(layout: Layout, edit: Callable[[str], str]) -> None:
    """Change the newest manifest's text, and the index to go with it."""
    index = json.loads((layout.root / "index.json").read_text())
    entry = index["manifests"][-1]
    before = layout.path(entry["digest"]).read_text()
    after = edit(before)
    assert after != before
    layout.path(entry["digest"]).unlink()
    entry["digest"], entry["size"] = tiny.digest(after.encode()), len(after.encode())
    layout.path(entry["digest"]).write_text(after)
    (layout.root / "index.json").write_text(json.dumps(index))


def edit_document(layout: Layout, **changes: object) -> None:
    """Change the newest snapshot's document, with all hashes right."""
    _, manifest = bundle(layout.root)
    document = json.loads(layout.read(manifest.document))
    text = json.dumps({**document, **changes}).encode()
    layout.path(tiny.digest(text)).write_bytes(text)

    def edit(before: str) -> str:
        value = json.loads(before)
        value["config"] |= {"digest": tiny.digest(text), "size": len(text)}
        return json.dumps(value)

    change(layout, edit)


def edit_file(layout: Layout, title: str, content: bytes) -> None:
    """Put other bytes in the place of a file of the newest snapshot, with all hashes right."""
    layout.path(tiny.digest(content)).write_bytes(content)

    def edit(before: str) -> str:
        value = json.loads(before)
        for one in value["layers"]:
            if one["annotations"]["org.opencontainers.image.title"] == title:
                one |= {"digest": tiny.digest(content), "size": len(content)}
        return json.dumps(value)

    change(layout, edit)
