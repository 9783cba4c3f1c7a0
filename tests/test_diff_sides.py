"""What a user may name, the codes that `tfenv diff` ends with, and that nothing is written anywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import image_files
import pytest
import small
from small import Place
from tfenv import cli
from tfenv.diff import describe, sides
from tfenv.errors import IntegrityError, UsageError
from tfenv.lock import write_lock
from tfenv.workspace import Workspace

ONE = image_files.image([image_files.layer(image_files.dist_info("numpy", "1.26.4"))], {"User": "1"})
TWO = image_files.image([image_files.layer(image_files.dist_info("numpy", "2.0.0"))], {"User": "1"})


def room(here: Place) -> sides.Room:
    return sides.here(here.env, here.workspace)


def saving(here: Place, monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, bytes]) -> list[str]:
    """The engine has the image; gives the list of what it was asked to save."""
    digest = json.loads(files["index.json"])["manifests"][0]["digest"]
    here.images.loaded.add(digest)
    here.images.tags[name] = digest
    asked: list[str] = []

    @contextmanager
    def saved(image: str) -> Iterator[Iterator[bytes]]:
        asked.append(image)
        yield image_files.chunks(image_files.tar(files))

    monkeypatch.setattr(here.images, "saved", saved, raising=False)
    return asked


def test_a_cell_means_its_lock_by_every_name(here: Place) -> None:
    for name in (here.cell.name, "2.15-cu12", "latest"):
        found = sides.open_side(name, room(here))
        assert (found.kind, found.name) == ("lock", name)


def test_a_folder_and_an_archive_and_one_of_several(here: Place) -> None:
    folder = image_files.folder(here.root / "layout", ONE)
    archive = here.root / "a.tar"
    archive.write_bytes(image_files.tar(TWO))
    assert sides.open_side(str(folder), room(here)).wheels.values == {"numpy": "1.26.4"}
    assert sides.open_side(str(archive), room(here)).wheels.values == {"numpy": "2.0.0"}
    blobs = [image_files.blobs([image_files.layer({n: b""})], name=n) for n in ("x", "y")]
    image_files.folder(here.root / "many", image_files.layout(*blobs))
    found = sides.open_side(f"{here.root}/many@y", room(here))
    assert found.entries is not None and set(found.entries) == {"y"}


def test_a_folder_that_is_called_as_a_cell_is_the_cell(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here.root)
    (here.root / "2.15-cu12").mkdir()
    assert sides.open_side("2.15-cu12", room(here)).kind == "lock"
    image_files.folder(here.root / "2.15-cu12", ONE)
    assert sides.open_side("2.15-cu12", room(here)).kind == "image"


def test_an_image_is_saved_once_and_then_known(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = saving(here, monkeypatch, "team/app:1", ONE)
    first = sides.open_side("team/app:1", room(here))
    assert first.wheels.values == {"numpy": "1.26.4"} and len(asked) == 1
    assert sides.open_side("team/app:1", room(here)) == first
    assert len(asked) == 1


def test_an_image_with_an_archive_in_the_store_is_not_saved(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfenv import pipeline

    made = pipeline.make(here.workspace, here.inputs, here.host)
    pipeline.tag(here.workspace, made, here.host)
    assert sides.archive_of(made.image.id, here.store) == made.built.archive
    assert sides.archive_of("sha256:" + "0" * 64, here.store) is None
    found = sides.open_side(small.TAGS[0], room(here))  # the fake engine cannot save
    assert found.digest == made.image.id


def test_a_name_that_is_nothing_says_so(here: Place) -> None:
    with pytest.raises(UsageError, match=r"no file, no cell and no image here"):
        sides.open_side("2.15-cu13", room(here))
    with pytest.raises(UsageError, match="the engine has no image team/none:1"):
        sides.open_side("team/none:1", room(here))
    with pytest.raises(UsageError, match=r"there is no \./none"):
        sides.open_side("./none", room(here))
    with pytest.raises(IntegrityError):
        (here.root / "a.tar").write_bytes(b"no tar")
        sides.open_side(str(here.root / "a.tar"), room(here))


def test_a_lock_as_a_commit_has_it(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = here.workspace.folder(here.cell)
    team = here.workspace.matrix_path.parent
    for line in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"], ["tag", "v1"]):
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", str(team), *who, *line], check=True)
    old = here.lock
    write_lock(replace(old, epoch=old.epoch + 1, wheels=old.wheels[1:]), here.workspace.images)
    found = sides.open_side("2.15-cu12@v1", room(here))
    assert found.wheels == describe.wheels_of(old)
    assert sides.open_side("2.15-cu12", room(here)).wheels != found.wheels
    for wrong in ("nothing", "--output=x", "v1:secret", ""):
        with pytest.raises(UsageError):
            sides.open_side(f"2.15-cu12@{wrong}" if wrong else "2.15-cu13@v1", room(here))
    assert folder.is_dir()


def run(*arguments: object) -> int:
    return cli.run(["diff", *map(str, arguments)])


def test_the_codes(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    one = image_files.folder(here.root / "one", ONE)
    two = image_files.folder(here.root / "two", TWO)
    assert run(one, one) == 0
    assert "identical" in capsys.readouterr().out
    assert run("2.15-cu12", "latest") == 0
    assert run(one, two) == 1
    assert "~ numpy  1.26.4 -> 2.0.0" in capsys.readouterr().out
    assert run(one, "2.15-cu13") == 2
    (here.root / "bad.tar").write_bytes(b"no tar")
    assert run(one, here.root / "bad.tar") == 2  # trouble is 2, as with diff(1)
    assert "not a usable image" in capsys.readouterr().err


def test_the_formats(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    one = image_files.folder(here.root / "one", ONE)
    two = image_files.folder(here.root / "two", TWO)
    assert run(one, two, "--format", "json") == run(one, two, "--json") == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == second and json.loads(first)["differs"] is True
    assert run(one, two, "--format", "markdown") == 1
    assert capsys.readouterr().out.startswith("### `")
    assert run(one, two, "--full") == 1
    assert "METADATA" in capsys.readouterr().out


def test_a_hostile_image_leaves_no_file_behind(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here.root)
    members = [small.file("../../evil"), small.file("/etc/evil"), small.link("x", "/"), small.file("x/evil")]
    layer = small.PACK["zstd"](small.tarred(members))
    at = image_files.folder(here.root / "one", image_files.image([layer]))
    before = {path for path in here.root.parent.rglob("*") if "memo" not in path.parts}
    assert run(at, "2.15-cu12") == 1
    assert {path for path in here.root.parent.rglob("*") if "memo" not in path.parts} == before


def test_a_snapshot_tells_its_lock_and_its_files(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    from tfenv.snapshot.archive import archive

    cell_folder = here.workspace.folder(here.cell)
    archive(here.inputs, here.host, here.root / "bundle", cell_folder=cell_folder, reports=here.root)
    found = sides.open_side(str(here.root / "bundle"), room(here))
    assert found.kind == "snapshot" and found.entries is not None
    assert found.wheels.values["tensorflow"] == here.cell.row.tensorflow
    capsys.readouterr()
    assert run("2.15-cu12", here.root / "bundle", "--json") == 1  # the fake engine's image has no labels
    told = {of["key"]: of for of in json.loads(capsys.readouterr().out)["sections"]}
    for key in ("wheels", "debian", "asked"):
        assert not told[key]["differs"] and not told[key]["unknown"]
    assert run(here.root / "bundle", here.root / "bundle") == 0


# The real image, where `make image` has made it.


def made_cell() -> str:
    """The cell that `make image` builds: $CELL, else the Makefile's."""
    root = Path(__file__).resolve().parents[1]
    default = re.search(r"^CELL \?= (\S+)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert default
    (cell,) = Workspace(root, {}).cells((os.environ.get("CELL") or default[1],))
    return cell.name


@pytest.mark.image
def test_the_image_does_not_differ_from_its_lock(capsys: pytest.CaptureFixture[str]) -> None:
    cell = made_cell()
    assert run(cell, f"tfenv:{cell}", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    compared = {of["key"] for of in told["sections"] if not of["unknown"]}
    assert compared >= {"stack", "python", "wheels", "debian", "labels", "layers"}
    assert cli.run(["sbom", f"tfenv:{cell}"]) == 0
    out, err = capsys.readouterr()
    assert "in the lock" not in err and len(json.loads(out)["components"]) > 100
