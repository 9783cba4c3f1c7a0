"""`tfenv rebuild`: restores, builds, compares on four levels, and says what is not to be had."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import small
from small import Place, file, folder, tarred
from snapshots import Tell, bundle, change, data, edit_document, edit_file, oci_archive, rename
from tfenv import cli, digest, oci
from tfenv.snapshot.check import check
from tfenv.snapshot.layout import Layout

WHEEL = "wheels/python/tensorflow-2.15.1-py3-none-any.whl"
DEB = "debs/rest/apt_1.0_amd64.deb"


@pytest.fixture
def kept(here: Place, tell: Tell, tmp_path: Path) -> Path:
    """A snapshot, and nothing else: the store is gone."""
    assert tell("archive", small.CELL, "--to", str(tmp_path / "kept"))[0] == 0
    shutil.rmtree(here.store.root)
    return tmp_path / "kept"


def blob(kept: Path, title: str) -> Path:
    layout, manifest = bundle(kept)
    return layout.path(manifest.by_title[title].digest)


def state(kept: Path) -> dict[str, tuple[int, bytes]]:
    """All files of a folder."""
    return {
        str(path.relative_to(kept)): (path.stat().st_mode, path.read_bytes())
        for path in kept.rglob("*")
        if path.is_file()
    }


# outcomes


def test_identical(here: Place, kept: Path, tell: Tell) -> None:
    before = state(kept)
    told = data(tell("rebuild", str(kept), "--offline", "--json"))
    assert (told["outcome"], told["manifest"]) == ("identical", here.docker.manifest)
    assert told["levels"] == dict.fromkeys(("files", "layers", "configuration", "manifest"), True)
    assert here.leftovers() == []
    assert state(kept) == before


def test_it_is_built_from_what_the_bundle_holds(here: Place, kept: Path, tell: Tell) -> None:
    """Not from today's templates, with no cache and no network, and told what it was told then."""
    edit_file(Layout(kept), "context/requirements.lock", b"# of then\n")
    docker = here.docker.path.read_text()
    seen = here.docker.folder / "seen"
    here.docker.path.write_text(
        docker.replace('cp "$here/image.tar"', f'cp -r "$last" {seen}; cp "$here/image.tar"')
    )
    assert tell("rebuild", str(kept), "--offline")[0] == 0
    assert (seen / "requirements.lock").read_text() == "# of then\n"
    asked = here.docker.asked[-1]
    for words in ("--no-cache", "--network none", "SOURCE_DATE_EPOCH=1710892800", "compression-level=7"):
        assert words in asked, asked


def test_same_content(here: Place, tell: Tell, tmp_path: Path) -> None:
    def builds(kind: str) -> None:
        """The stand-in engine gives an image whose diff ids are true."""
        image = oci_archive(here.docker.folder / "image.tar", [tarred([file("a", b"a" * 999)])], kind=kind)
        (here.docker.folder / "digest").write_text(oci.describe(image).manifest_digest)

    builds("zstd")
    tell("archive", small.CELL, "--to", str(tmp_path / "kept"))
    builds("gzip")
    told = data(tell("rebuild", str(tmp_path / "kept"), "--json"))
    assert (told["outcome"], told["causes"]) == ("same content", {"compressor": 1})
    assert not told["levels"]["manifest"] and told["levels"]["layers"]


def rebuilt_as(here: Place, *members: Any) -> None:
    """What the builder gives now; the diff ids of the stand-in engine are of the compressed layers."""
    here.docker.will_build(tarred([folder("etc"), *members]), tarred([file("b")]))


def test_explained_difference(here: Place, kept: Path, tell: Tell) -> None:
    rebuilt_as(here, file("etc/a", mtime=5), file("var/log/dpkg.log", b"now"))
    code, out, err = tell("rebuild", str(kept))
    assert (code, err.count("error")) == (5, 0)
    lines = [line.strip() for line in out.splitlines()]
    assert lines[0] == f"{small.CELL}: explained difference"
    assert "layer 1: etc/a: time: time stamp" in lines
    assert "layer 1: var/log/dpkg.log: presence (new): log" in lines
    assert "cause: time stamp (1): the file's time differs, its bytes do not" in lines
    told = data(tell("rebuild", str(kept), "--json"), 5)
    assert (told["exit_code"], told["causes"]) == (5, {"time stamp": 1, "log": 1})


def test_different(here: Place, kept: Path, tell: Tell) -> None:
    rebuilt_as(here, file("etc/a", b"other", mtime=5))
    code, out, _ = tell("rebuild", str(kept))
    assert code == 1 and f"{small.CELL}: different" in out
    assert "layer 1: etc/a: content, time: time stamp, and no known cause of content" in out
    told = data(tell("rebuild", str(kept), "--json"), 1)
    (found,) = told["differences"]
    assert (found["path"], found["unexplained"]) == ("etc/a", ["content"])
    assert Path(told["archive"]).is_file()
    assert here.store.read_record(here.inputs.hash) is None  # it is not taken for the cell's build


def test_what_nothing_explains_comes_first_and_the_list_is_cut(here: Place, kept: Path, tell: Tell) -> None:
    rebuilt_as(here, file("etc/a", b"other"), *(file(f"var/log/{n}.log") for n in range(40)))
    _, out, _ = tell("rebuild", str(kept))
    shown = [line.strip() for line in out.splitlines() if line.startswith("  layer 1")]
    assert shown[0].startswith("layer 1: etc/a") and len(shown) == 20
    assert "... and 21 more: --json shows all" in out


def test_another_builder_is_named(here: Place, kept: Path, tell: Tell) -> None:
    here.docker.path.write_text(here.docker.path.read_text().replace("26.1.5", "29.0.0"))
    told = data(tell("rebuild", str(kept), "--json"))
    assert (told["builder"]["then"]["engine"], told["builder"]["now"]["engine"]) == ("26.1.5", "29.0.0")
    assert "built by Docker Engine 29.0.0, then by Docker Engine 26.1.5" in tell("rebuild", str(kept))[1]


def test_the_image_in_a_file_and_in_the_engine(here: Place, kept: Path, tell: Tell, tmp_path: Path) -> None:
    to = tmp_path / "image.tar"
    assert tell("rebuild", str(kept), "--to", str(to), "--load")[0] == 0
    assert to.read_bytes() == (here.docker.folder / "image.tar").read_bytes()
    assert here.images.tags == {f"tfenv-rebuilt:{small.CELL}": here.docker.manifest}
    assert tell("rebuild", str(kept), "--to", str(to))[0] == 2  # never written over


# not comparable, not ready


def test_a_newer_format_is_not_comparable(here: Place, kept: Path, tell: Tell) -> None:
    edit_document(Layout(kept), format=2)
    code, _, err = tell("rebuild", str(kept))
    assert code == 3 and "format 2, this tfenv reads up to 1" in err and here.docker.builds == 1


def test_another_platform_is_not_comparable(here: Place, kept: Path, tell: Tell) -> None:
    edit_document(Layout(kept), platform="linux/arm64")
    assert tell("rebuild", str(kept))[0] == 3


@pytest.mark.parametrize("lost", ["expected/tree.jsonl.zst", "expected/config.json"])
def test_without_the_recorded_files_only_digests_are_compared(
    here: Place, kept: Path, tell: Tell, lost: str
) -> None:
    blob(kept, lost).unlink()
    assert tell("rebuild", str(kept))[0] == 0
    rebuilt_as(here, file("etc/a", b"other"))
    code, _, err = tell("rebuild", str(kept))
    assert code == 3 and "what differs cannot be told without" in err


@pytest.mark.parametrize("recorded", [b"[]", b"{", b"[" * 100_000])
def test_a_recorded_configuration_that_is_none(here: Place, kept: Path, tell: Tell, recorded: bytes) -> None:
    edit_file(Layout(kept), "expected/config.json", recorded)
    rebuilt_as(here, file("etc/a", b"other"))
    code, _, err = tell("rebuild", str(kept))
    assert code == 1 and "expected/config.json" in err and "no JSON object" in err


def test_a_lock_of_another_format_is_not_needed(here: Place, kept: Path, tell: Tell) -> None:
    edit_file(Layout(kept), "lock.json", b'{"format": 99}')
    assert tell("rebuild", str(kept), "--offline")[0] == 0


def test_a_remote_engine_is_a_network(
    here: Place, kept: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 4 and "reached over a network" in err


def test_no_engine(here: Place, kept: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_BUILD", "no-engine")
    assert tell("rebuild", str(kept))[0] == 4


def test_a_step_that_fails_keeps_what_is_needed_to_repeat_it(
    here: Place, kept: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BUILD", "step-fails")
    code, _, err = tell("rebuild", str(kept))
    assert code == 1 and "the build failed" in err
    assert any(path.startswith("stage/rebuild-") for path in here.leftovers())
    monkeypatch.delenv("FAKE_BUILD")
    assert tell("rebuild", str(kept))[0] == 0 and here.leftovers() == []


@pytest.mark.parametrize("name", ["nonsense", "sha256:0000000"])
def test_a_name_that_is_not_there(kept: Path, tell: Tell, name: str) -> None:
    code, _, err = tell("rebuild", f"{kept}:{name}" if name == "nonsense" else f"{kept}@{name}")
    assert code == 2 and f"{kept}:{small.CELL}" in err


# what is damaged, and what has vanished


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if how == "changed":
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    elif how == "truncated":
        path.write_bytes(content[:-1])
    elif how == "link":
        path.symlink_to("/etc/hostname")
    elif how == "pipe":
        os.mkfifo(path)


@pytest.mark.parametrize("how", ["changed", "truncated", "missing", "link", "pipe"])
def test_a_damaged_input_is_named_and_not_built_from(here: Place, kept: Path, tell: Tell, how: str) -> None:
    damage(blob(kept, WHEEL), how)
    damage(blob(kept, DEB), "missing")
    builds = here.docker.builds
    code, out, err = tell("rebuild", str(kept), "--offline", "--json")
    told = json.loads(out)
    assert (code, here.docker.builds) == (4, builds)
    lost = {one["file"]: one for one in told["lost"]}
    assert set(lost) == {WHEEL, DEB}
    said = {
        "changed": "was changed",
        "truncated": "bytes, not",
        "missing": "is missing",
        "link": "no plain file",
        "pipe": "no plain file",
    }[how]
    assert said in lost[WHEEL]["why"]
    assert lost[WHEEL]["instead"][0] == "the same blob in another copy of the bundle"
    assert "PIP_FIND_LINKS" in lost[WHEEL]["instead"][1]
    assert (
        "tensorflow 2.15.1" in lost[WHEEL]["instead"][2] and "--upgrade wheels" in lost[WHEEL]["instead"][2]
    )
    assert (
        "snapshot service of 2025-11-30: debian, pool/main/a/apt/apt_1.0_amd64.deb" in lost[DEB]["instead"][1]
    )
    assert f"tfenv lock {small.CELL} --upgrade debian" in lost[DEB]["instead"][2]
    assert here.leftovers() == [] and "without --offline" in err


def test_the_recipe_cannot_be_fetched(here: Place, kept: Path, tell: Tell) -> None:
    blob(kept, "context/tools/settle.sh").unlink()
    code, _, err = tell("rebuild", str(kept))
    assert code == 4 and "context/tools/settle.sh: " in err and "the recipe of tfenv 0.1.0" in err


def test_the_store_has_what_the_bundle_lacks(here: Place, kept: Path, tell: Tell) -> None:
    small.fill(here.store, here.lock)
    blob(kept, WHEEL).unlink()
    told = data(tell("rebuild", str(kept), "--offline", "--json"))
    assert (told["outcome"], told["elsewhere"]) == ("identical", {WHEEL: "the store"})


def test_the_network_has_what_the_bundle_lacks(
    here: Place, kept: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is lacking is asked for, and what is gone of one kind keeps nothing else back."""
    asked: list[str] = []

    def fetch(lock: Any, store: Any, *_: object, **__: object) -> None:
        from tfenv.fetch import MissingInputs

        asked.extend(item.filename for item in (*lock.wheels, *lock.debian))
        if lock.debian:
            raise MissingInputs(lock.cell, debian=[p.filename for p in lock.debian])
        small.put(store, b"the contents of tensorflow")

    monkeypatch.setattr("tfenv.fetch.fetch", fetch)
    blob(kept, WHEEL).unlink()
    told = data(tell("rebuild", str(kept), "--json"))
    assert told["elsewhere"] == {WHEEL: "the network"} and asked == [WHEEL.rpartition("/")[2]]
    shutil.rmtree(here.store.root)
    blob(kept, DEB).unlink()
    code, _, err = tell("rebuild", str(kept))
    assert code == 4 and "1 of its inputs are not to be had" in err and f"{DEB}: " in err


def test_offline_asks_no_network(
    here: Place, kept: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    def no_socket(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", no_socket)
    assert tell("rebuild", str(kept), "--offline")[0] == 0
    blob(kept, WHEEL).unlink()
    shutil.rmtree(here.store.root)
    assert tell("rebuild", str(kept), "--offline")[0] == 4


def test_snapshot_services_are_named_by_this_machines_own_mirrors(
    here: Place, kept: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFENV_DEBIAN_MIRROR", "http://127.0.0.1:9/debian")
    monkeypatch.setenv("TFENV_DEBIAN_SNAPSHOT", "http://127.0.0.1:9/snapshot")
    blob(kept, DEB).unlink()
    code, _, err = tell("rebuild", str(kept))
    assert code == 4
    assert "the distribution's snapshot service: http://127.0.0.1:9/snapshot/archive/debian/2025" in err


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((), "--upgrade wheels"),
        (
            (
                "tensorflow-2.15.1-1-py3-none-any.whl",
                "tensorflow-2.16.1-py3-none-any.whl",
                "tensorflow-3.tar.gz",
            ),
            "has of that version tensorflow-2.15.1-1-py3-none-any.whl and as newest version 2.16.1",
        ),
        (("tensorflow-2.17.0rc1-py3-none-any.whl",), "--upgrade wheels"),
        (("tensorflow-2.15.1-py3-none-any.whl",), "your index has as newest version 2.15.1"),
    ],
)
def test_what_the_index_has_in_place_of_a_wheel(
    here: Place,
    kept: Path,
    tell: Tell,
    monkeypatch: pytest.MonkeyPatch,
    files: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setattr("tfenv.simple_index.open_index", lambda env: "the index")
    monkeypatch.setattr(
        "tfenv.simple_index.project_files",
        lambda index, name: [SimpleNamespace(filename=f) for f in files if name == "tensorflow"],
    )
    blob(kept, WHEEL).unlink()
    code, out, _ = tell("rebuild", str(kept), "--json")
    (lost,) = json.loads(out)["lost"]
    assert code == 4 and lost["instead"][-1].endswith(said)


# bundles made to do harm


@pytest.mark.parametrize("name", ["/tmp/out", "../../../out", "context/../../out", "wheels/python/./x"])
def test_nothing_is_written_outside(here: Place, kept: Path, tell: Tell, tmp_path: Path, name: str) -> None:
    rename(kept, WHEEL, name)
    before = set(tmp_path.rglob("*"))
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 1 and "names a file outside of its folder" in err and "do not use this bundle" in err
    assert {path for path in set(tmp_path.rglob("*")) - before if here.store.root not in path.parents} <= {
        here.store.root
    }


def test_a_blob_folder_that_is_a_link_is_not_followed(kept: Path, tell: Tell, tmp_path: Path) -> None:
    (kept / "blobs").rename(tmp_path / "elsewhere")
    (kept / "blobs").symlink_to(tmp_path / "elsewhere")
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 1 and "is no folder of its own" in err


@pytest.mark.parametrize("digest", ["sha256:../../../etc/passwd", "md5:x", f"sha256:{'g' * 64}"])
def test_digests_that_are_paths(kept: Path, tell: Tell, digest: str) -> None:
    layout, manifest = bundle(kept)
    change(layout, lambda text: text.replace(manifest.by_title[WHEEL].digest, digest))
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 1 and "is no sha256 digest" in err


def test_export_options_that_name_a_file(kept: Path, tell: Tell) -> None:
    edit_document(Layout(kept), export=["compression=zstd,dest=/etc/x"])
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 1 and "is not allowed there" in err


def test_a_dockerfile_that_fetches(here: Place, kept: Path, tell: Tell) -> None:
    edit_file(Layout(kept), "context/Dockerfile", b"FROM elsewhere.example/image\nRUN true\n")
    builds = here.docker.builds
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 1 and "elsewhere.example/image is not in the bundle" in err
    assert here.docker.builds == builds and here.leftovers() == []


def test_a_manifest_of_something_else(kept: Path, tell: Tell) -> None:
    layout = Layout(kept)
    change(layout, lambda text: text.replace("application/vnd.tfenv.snapshot.v1+json", "application/x", 9))
    code, _, err = tell("rebuild", str(kept))
    assert code == 2 and "no snapshot of tfenv" in err


# links into the build


def test_the_bundles_own_files_are_never_changed(here: Place, kept: Path, tell: Tell) -> None:
    """Files with another mode are copied: a build wants 0644, and a link is the same file."""
    blob(kept, WHEEL).chmod(0o600)
    before = state(kept)
    assert tell("rebuild", str(kept), "--offline")[0] == 0
    assert state(kept) == before
    assert all(path.stat().st_nlink == 1 for path in (kept / "blobs" / "sha256").iterdir())


def test_a_bundle_on_another_file_system_is_copied(
    here: Place, kept: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "other device")

    monkeypatch.setattr("os.link", link)
    assert tell("rebuild", str(kept), "--offline")[0] == 0


def test_a_full_disk(here: Place, kept: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    def link(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = state(kept)
    monkeypatch.setattr("os.link", link)
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 4 and "No space left on device" in err
    assert here.leftovers() == [] and state(kept) == before


def test_too_little_room_is_told_before_anything_is_written(
    here: Place, kept: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfenv.disk.shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 4 and "not enough disk space" in err and here.leftovers() == []


# killed


def test_a_kill_while_it_builds_leaves_the_bundle_alone(here: Place, kept: Path) -> None:
    before = state(kept)
    argv = [sys.executable, "-c", "from tfenv.cli import main; main()", "rebuild", str(kept), "--offline"]
    with subprocess.Popen(argv, env={**os.environ, "FAKE_BUILD": "hangs"}) as running:
        here.docker.hanging()
        running.kill()
    assert state(kept) == before and not check(Layout(kept)).problems
    assert cli.run(["rebuild", str(kept), "--offline"]) == 0
    assert here.leftovers() == []


def test_the_store_has_the_cells_build_again(here: Place, kept: Path, tell: Tell) -> None:
    small.fill(here.store, here.lock)
    assert tell("build", small.CELL, "--record")[0] == 0
    shutil.rmtree(here.store.root)
    told = data(tell("rebuild", str(kept), "--json"))
    record = here.store.read_record(here.inputs.hash)
    assert record is not None and digest.from_json(record).manifest == told["manifest"]
    archive = here.store.path(record["archive"])
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == record["archive"]
    assert data(tell("build", small.CELL, "--json"))["reused"]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_bundle_that_lies_is_not_taken_for_a_build_of_the_cell(
    here: Place, kept: Path, tell: Tell, recorded: bool
) -> None:
    """It says that it is of the cell's own inputs, and gives just the image that it says."""
    if recorded:
        small.fill(here.store, here.lock)
        assert tell("build", small.CELL, "--record")[0] == 0
        shutil.rmtree(here.store.root)
        rebuilt_as(here, file("etc/evil"))
        shutil.rmtree(kept)
        recipe = here.workspace.folder(here.cell) / digest.FILE_NAME
        committed = recipe.read_bytes()
        recipe.unlink()
        small.fill(here.store, here.lock)
        assert tell("archive", small.CELL, "--to", str(kept))[0] == 0
        recipe.write_bytes(committed)
        shutil.rmtree(here.store.root)
    assert data(tell("rebuild", str(kept), "--json"))["outcome"] == "identical"
    assert here.store.read_record(here.inputs.hash) is None


def test_outside_of_any_repository(
    here: Place, kept: Path, tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert tell("rebuild", str(kept), "--offline")[0] == 0


def test_a_bundle_without_a_dockerfile(kept: Path, tell: Tell) -> None:
    rename(kept, "context/Dockerfile", "context/Other")
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 1 and "holds no Dockerfile" in err
    edit_file(Layout(kept), "context/Other", b"FROM \xff\n")
    rename(kept, "context/Other", "context/Dockerfile")
    code, _, err = tell("rebuild", str(kept), "--offline")
    assert code == 1 and "beyond the bundle" in err
