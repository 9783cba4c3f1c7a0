"""The document of a snapshot, and bundles of every version that was ever written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
import zstandard
from small import file, link, tarred
from snapshots import SNAPSHOT, bundle, oci_archive, titles
from tfenv.errors import IntegrityError
from tfenv.plain import to_plain
from tfenv.snapshot import format, tree
from tfenv.snapshot.check import check
from tfenv.snapshot.format import READERS, NotComparable, dump, load
from tfenv.snapshot.layout import Layout
from tfenv.snapshot.rebuild import open_snapshot

FIXTURES = Path(__file__).parent / "fixtures" / "snapshots"


def plain(**changes: Any) -> bytes:
    return json.dumps({**to_plain(SNAPSHOT), **changes}).encode()


def test_a_document_is_read_as_it_was_written() -> None:
    assert load(dump(SNAPSHOT), where="here") == SNAPSHOT
    assert dump(SNAPSHOT) == dump(load(dump(SNAPSHOT), where="here"))


@pytest.mark.parametrize("version", [2, 99])
def test_a_newer_format_is_not_guessed_at(version: int) -> None:
    with pytest.raises(NotComparable, match=f"format {version}, this tfenv reads up to 1") as caught:
        load(plain(format=version), where="here")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"format": 1}',
        plain(format=0),
        plain(format="1"),
        plain(format=True),
        plain(cell="../x"),
        plain(cell="a b"),
        plain(platform="linux"),
        plain(export=["dest=/etc/passwd"]),
        plain(export=["compression=zstd,dest=/etc/passwd"]),
        plain(export=["type=local"]),
        plain(epoch=-1),
        plain(epoch="1"),
        plain(lock="1"),
        plain(more=1),
        plain(contexts=[{"name": "x=y,z", "folder": "base/0", "digest": f"sha256:{'1' * 64}"}]),
        plain(contexts=[{"name": "x", "folder": "../..", "digest": f"sha256:{'1' * 64}"}]),
        plain(contexts=[{"name": "x", "folder": "base/0", "digest": "sha256:1"}]),
        plain(expected={**to_plain(SNAPSHOT.expected), "layer_bytes": []}),
        plain(expected={**to_plain(SNAPSHOT.expected), "manifest": "latest"}),
    ],
)
def test_a_damaged_document(text: bytes) -> None:
    with pytest.raises(IntegrityError, match="here is no snapshot of tfenv"):
        load(text, where="here")


def test_there_is_a_fixture_of_every_version() -> None:
    assert {f"version-{number}" for number in READERS} == {path.name for path in FIXTURES.iterdir()}


@pytest.mark.parametrize("version", sorted(READERS))
def test_bundles_of_every_version_are_read(version: int) -> None:
    layout = Layout(FIXTURES / f"version-{version}")
    checked = check(layout)
    assert not checked.problems and not checked.unused and len(checked.snapshots) == 1
    manifest, snapshot = open_snapshot(layout, layout.snapshots()[0])
    assert snapshot.format == version and snapshot.cell == small.CELL
    recorded = tree.load(layout.read(manifest.by_title["expected/tree.jsonl.zst"]))
    assert recorded.digest == snapshot.expected.tree
    assert [entry.path for layer in recorded.layers for entry in layer] == ["etc", "etc/a", "b"]
    assert "context/Dockerfile" in titles(bundle(layout.root)[1])


# file trees


def read(layers: list[Any], tmp_path: Path) -> tree.Tree:
    return tree.read_tree(oci_archive(tmp_path / "image.tar", [tarred(layer) for layer in layers]))


def test_a_tree_is_read_as_it_was_written(tmp_path: Path) -> None:
    import tarfile

    found = read(
        [
            [file("a", b"1", uid=7, gid=8, uname="x", gname="y", mode=0o4755, mtime=5), link("l", "../a")],
            [link("h", "./a", tarfile.LNKTYPE), small.folder("d/"), file("d/\udcff", b"")],
        ],
        tmp_path,
    )
    assert tree.load(tree.dump(found)) == found
    first = found.layers[0][0]
    assert (first.owner, first.mode, first.time, first.size) == ("7:8 x:y", 0o4755, 5, 1)
    assert [e.path for e in found.layers[1]] == ["h", "d", "d/\udcff"] and found.layers[1][0].link == "a"


def test_the_trees_digest_is_of_what_is_seen(tmp_path: Path) -> None:
    import tarfile

    one = read([[file("a", b"1"), file("b", b"2")]], tmp_path).digest
    same = [
        [[file("b", b"2", mtime=9), file("a", b"1")]],
        [[file("a", b"1")], [file("b", b"2")]],
        [[file("a", b"0"), file("c", b"3")], [file("a", b"1"), file(".wh.c", b""), file("b", b"2")]],
        [[small.folder("d"), file("d/x", b"")], [file(".wh.d", b""), file("a", b"1"), file("b", b"2")]],
    ]
    assert {read(layers, tmp_path).digest for layers in same} == {one}
    twice = [[file("a", b"1"), file("b", b"1")]], [[file("a", b"1"), link("b", "a", tarfile.LNKTYPE)]]
    assert len({read(layers, tmp_path).digest for layers in twice}) == 1
    others = [
        [[file("a", b"1"), file("b", b"3")]],
        [[file("a", b"1"), file("b", b"2", mode=0o600)]],
        [[file("a", b"1"), file("b", b"2", uid=1)]],
        [[file("a", b"1"), link("b", "a")]],
        [[file("a", b"1")]],
    ]
    assert one not in {read(layers, tmp_path).digest for layers in others}


def test_an_opaque_folder_hides_what_is_below(tmp_path: Path) -> None:
    layers = [
        [small.folder("d"), file("d/old", b"")],
        [small.folder("d"), file("d/new", b""), file("d/.wh..wh..opq", b"")],
    ]
    assert list(tree.merged(read(layers, tmp_path).layers)) == ["d", "d/new"]


@pytest.mark.parametrize(
    "text",
    [
        b'{"layer": 0, "entries": 1}\n',
        b'{"layer": 0}\n',
        b"[]\n",
        b'{"layer": 0, "entries": 1}\n{"path": "a"}\n',
        b'{"layer": 0, "entries": 1}\n{"path": "a", "kind": "file", "mode": "x", "time": 0}\n',
        b'{"layer": 0, "entries": 1}\n{"path": "a", "kind": "file", "mode": 1, "time": 0, "more": 1}\n',
        b'{"layer": 0, "entries": 0}',
    ],
)
def test_a_damaged_tree(text: bytes) -> None:
    with pytest.raises(IntegrityError, match="recorded file tree is damaged"):
        tree.load(zstandard.compress(text))
    with pytest.raises(IntegrityError, match="recorded file tree is damaged"):
        tree.load(text)


def test_a_tree_that_grows_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_LIMIT", 10_000)
    line = json.dumps({"layer": 0, "entries": 0}).encode() + b"\n"
    with pytest.raises(IntegrityError, match="larger than"):
        tree.load(zstandard.compress(line * 1000))


def test_a_cut_off_image(tmp_path: Path) -> None:
    archive = oci_archive(tmp_path / "image.tar", [tarred([file("a", b"x" * 5000)])[:3000]])
    with pytest.raises(IntegrityError, match="cannot be read"):
        tree.read_tree(archive)


def test_versions_are_numbered_without_gaps() -> None:
    assert sorted(READERS) == list(range(1, format.FORMAT + 1))
    assert replace(SNAPSHOT).format == format.FORMAT
