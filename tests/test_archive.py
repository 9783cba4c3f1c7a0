"""`tfenv archive`: a bundle holds all that a build reads, once, and is rehashed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matrices
import pytest
import small
import teams
import tiny
from small import Place
from snapshots import Tell, bundle, data, rename, titles
from tfenv import oci, pipeline
from tfenv.engine import Completed
from tfenv.errors import IntegrityError, NotReadyError
from tfenv.files import write_all
from tfenv.inputs import unlocked
from tfenv.lockfile import dump_lock
from tfenv.report import Check, Report, write
from tfenv.report import Host as ReportHost
from tfenv.snapshot import base, tree
from tfenv.team import flow


def test_a_bundle_holds_all_that_a_build_reads(here: Place, tell: Tell, tmp_path: Path) -> None:
    told = data(tell("archive", small.CELL, "--to", str(tmp_path / "kept"), "--json"))
    assert told["snapshot"] == f"{tmp_path}/kept:{small.CELL}" and not told["known"]
    layout, manifest = bundle(tmp_path / "kept")
    held = titles(manifest)
    lock = here.lock
    assert {f"wheels/{w.layer}/{w.filename}" for w in lock.wheels} <= held
    assert {f"debs/{'essential' if p.essential else 'rest'}/{p.filename}" for p in lock.debian} <= held
    tools = {f"context/tools/{n}" for n in ("bootstrap.sh", "settle.sh", "trim.py")}
    assert {"context/Dockerfile", "context/essential.tar", "lock.json", *tools} <= held
    assert {"expected/manifest.json", "expected/config.json", "expected/tree.jsonl.zst"} <= held
    assert told["files"] == len(held)
    document = json.loads(layout.read(manifest.document))
    assert document["format"] == 1 and document["expected"]["manifest"] == here.docker.manifest
    assert document["builder"]["engine"] == "26.1.5" and document["builder"]["buildx"].startswith("0.19.3")


def test_every_part_is_what_it_says(here: Place, tell: Tell, tmp_path: Path) -> None:
    tell("build", small.CELL, "--record")
    report = Report(
        image=small.CELL,
        digest=here.docker.manifest,
        suite="smoke",
        suite_hash="s" * 64,
        verdict="pass",
        host=ReportHost(kernel="6.1", gpus=("H",), driver="580"),
        checks=(Check(name="libraries", status="pass"),),
        started=0,
        seconds=1.0,
    )
    write(report, here.store.root / "reports")
    write(replace(report, digest=f"sha256:{'9' * 64}"), here.store.root / "reports")
    tell("archive", small.CELL, "--to", str(tmp_path / "kept"))
    layout, manifest = bundle(tmp_path / "kept")
    held = {file.title: layout.read(file) for file in manifest.files}
    assert held["lock.json"].decode() == dump_lock(here.lock)
    for name, text in here.inputs.files.items():
        assert held[f"context/{name}"].decode() == text
    assert json.loads(held["builds/archived.json"])["manifest"] == here.docker.manifest
    assert held["builds/recorded.json"] == (here.workspace.folder(here.cell) / "digest.json").read_bytes()
    (verdict,) = {name.split("/")[1] for name in held if name.startswith("reports/")}
    assert verdict.startswith(here.docker.manifest[7:19])
    assert json.loads(held[f"reports/{verdict}/report.ctrf.json"])
    assert json.loads(held["sbom/sbom.cdx.json"])["components"] and json.loads(held["sbom/sbom.spdx.json"])
    recorded = tree.load(held["expected/tree.jsonl.zst"])
    assert [e.path for layer in recorded.layers for e in layer] == ["etc", "etc/a", "b"]


def test_archiving_again_adds_nothing(here: Place, tell: Tell, tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    first = data(tell("archive", small.CELL, "--to", kept, "--json"))
    again = data(tell("archive", small.CELL, "--to", kept, "--json"))
    assert (again["manifest"], again["new_bytes"], again["known"]) == (first["manifest"], 0, True)


def test_cells_share_what_they_have_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell: Tell
) -> None:
    small.place(tmp_path, monkeypatch, small.TWO_BASES)
    told = tell("archive", "--all", "--to", str(tmp_path / "kept"), "--json")
    assert told[0] == 0, told
    one, two = map(json.loads, told[1].splitlines())
    assert one["cell"] != two["cell"] and two["new_bytes"] < two["bytes"]
    first, second = (bundle(tmp_path / "kept", number)[1].by_title for number in (0, 1))
    assert first[WHEEL].digest == second[WHEEL].digest
    assert first["lock.json"].digest != second["lock.json"].digest
    assert data(tell("archive", "--verify", str(tmp_path / "kept"), "--json"))["snapshots"] == [
        one["cell"],
        two["cell"],
    ]


def test_a_cell_on_a_stand_in_brings_its_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell: Tell
) -> None:
    base = tmp_path / "base"
    name = matrices.IMAGE
    for path, content in tiny.oci_files().items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_bytes(content)
    digest = json.loads((base / "index.json").read_text())["manifests"][0]["digest"]
    place = small.place(tmp_path, monkeypatch)
    inputs = replace(
        unlocked(place.cell, place.lock), stand_in=name, contexts={name: f"oci-layout://{base}@{digest}"}
    )
    monkeypatch.setattr(pipeline, "on_stand_in", lambda *_: inputs)
    assert tell("archive", small.CELL, "--stand-in", "--to", str(tmp_path / "kept"))[0] == 0
    layout, manifest = bundle(tmp_path / "kept")
    document = json.loads(layout.read(manifest.document))
    assert document["stand_in"] == name and not document["locked"]
    assert document["contexts"] == [{"name": name, "folder": "base/0", "digest": digest}]
    assert {f"base/0/{path}" for path in tiny.oci_files()} <= titles(manifest)
    assert tell("rebuild", str(tmp_path / "kept"), "--offline")[0] == 0
    asked = place.docker.asked[-1]
    assert f"--build-context {name}=oci-layout://" in asked and f"/base/0@{digest}" in asked


def test_the_engine_gives_the_blobs_of_a_base(tmp_path: Path) -> None:
    image = tiny.tar(tmp_path / "image.tar", {**tiny.oci_files(), "../out": b"x", "manifest.json": b"[]"})
    digest = oci.describe(image).manifest_digest
    asked: list[list[str]] = []

    def run(argv: Sequence[str]) -> Completed:
        asked.append(list(argv[1:3]))
        if argv[2] == "inspect":
            return Completed(1, "", "no such image")
        if argv[2] == "save":
            shutil.copyfile(image, argv[4])
        return Completed(0, "", "")

    folder = tmp_path / "folder"
    folder.mkdir()
    base.save(f"nvidia/cuda:x@{digest}", digest, run, "docker", folder)
    assert [words[1] for words in asked] == ["inspect", "pull", "save"]
    held = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert held == set(tiny.oci_files())
    with pytest.raises(IntegrityError, match="under another digest"):
        base.save("x", f"sha256:{'0' * 64}", run, "docker", folder)


def test_a_base_that_cannot_be_had(tmp_path: Path) -> None:
    def run(argv: Sequence[str]) -> Completed:
        return Completed(1, "", "dial tcp: no route to host\n")

    with pytest.raises(NotReadyError, match=r"nvidia/cuda:x cannot be had: dial tcp"):
        base.save("nvidia/cuda:x", f"sha256:{'0' * 64}", run, "docker", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["archive", "x"], "neither --to nor --verify"),
        (["archive", small.CELL, "--to", "a", "--verify", "b"], "--to and --verify"),
        (["archive", small.CELL, "--verify", "."], "--verify takes no cells"),
        (["archive", "--to", "kept"], "no cell is named"),
        (["archive", "nonsense", "--to", "kept"], "nonsense"),
        (["archive", "--verify", "nowhere"], "no folder of snapshots"),
        (["archive", "--verify", "."], "no folder of snapshots"),
    ],
)
def test_what_cannot_be_meant(here: Place, tell: Tell, arguments: list[str], said: str) -> None:
    code, out, err = tell(*arguments)
    assert (code, out) == (2, "") and said in err
    assert not (here.workspace.start / "kept").exists()


# --verify


@pytest.fixture
def kept(here: Place, tell: Tell, tmp_path: Path) -> Path:
    assert tell("archive", small.CELL, "--to", str(tmp_path / "kept"))[0] == 0
    return tmp_path / "kept"


def blob(kept: Path, title: str) -> Path:
    layout, manifest = bundle(kept)
    return layout.path(manifest.by_title[title].digest)


WHEEL = "wheels/python/tensorflow-2.15.1-py3-none-any.whl"


def test_a_whole_folder(kept: Path, tell: Tell) -> None:
    code, out, err = tell("archive", "--verify", str(kept))
    assert (code, err) == (0, "") and out.endswith("every file has its hash\n") and ": 1 snapshot, " in out


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[:-1])
        return
    if how == "changed":
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        return
    path.unlink()
    if how == "link":
        path.symlink_to("/etc/hostname")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()


@pytest.mark.parametrize("how", ["missing", "truncated", "changed", "link", "pipe", "folder"])
def test_every_damage_is_named(kept: Path, tell: Tell, how: str) -> None:
    damage(blob(kept, WHEEL), how)
    damage(blob(kept, "debs/rest/apt_1.0_amd64.deb"), "missing")
    code, out, err = tell("archive", "--verify", str(kept), "--json")
    problems = {p["file"]: p["state"] for p in json.loads(out)["problems"]}
    state = how if how in ("missing", "truncated", "changed") else "not a file"
    assert (code, problems) == (1, {WHEEL: state, "debs/rest/apt_1.0_amd64.deb": "missing"})
    assert f"{small.CELL}: {WHEEL} is {state}" in err and "-> take these files from another copy" in err


@pytest.mark.parametrize("how", ["missing", "truncated", "changed"])
def test_a_damaged_manifest_or_document(kept: Path, tell: Tell, how: str) -> None:
    layout, manifest = bundle(kept)
    damage(layout.path(manifest.document.digest), how)
    (problem,) = data(tell("archive", "--verify", str(kept), "--json"), 1)["problems"]
    assert (problem["file"], problem["state"]) == ("its document", how)
    damage(layout.path(manifest.blob.digest), how)
    (problem,) = data(tell("archive", "--verify", str(kept), "--json"), 1)["problems"]
    assert (problem["file"], problem["state"]) == ("", how)


def test_a_blob_that_nothing_names_is_told_and_is_no_damage(kept: Path, tell: Tell) -> None:
    (kept / "blobs" / "sha256" / ("0" * 64)).write_bytes(b"x")
    told = data(tell("archive", "--verify", str(kept), "--json"))
    assert told["unused"] == [f"sha256:{'0' * 64}"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../../out", "wheels/../../out", "context/tools"])
def test_names_that_lead_out_are_found(kept: Path, tell: Tell, name: str) -> None:
    rename(kept, WHEEL, name)
    (problem,) = data(tell("archive", "--verify", str(kept), "--json"), 1)["problems"]
    assert problem["state"] == "damaged" and name in problem["why"]


def test_a_store_whose_wheel_was_changed_archives_nothing(here: Place, tell: Tell, tmp_path: Path) -> None:
    tell("archive", small.CELL, "--to", str(tmp_path / "kept"))
    before = (tmp_path / "kept" / "index.json").read_bytes()
    damage(here.store.path(here.lock.wheels[-1].sha256), "changed")
    code, _, err = tell("archive", small.CELL, "--to", str(tmp_path / "kept"))
    assert code == 1 and "changed on disk" in err
    assert (tmp_path / "kept" / "index.json").read_bytes() == before
    assert here.leftovers() == []


# a team's environment


@pytest.fixture
def vision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A team's environment on a row's cell, all its inputs in the store."""
    place = small.place(tmp_path, monkeypatch, teams.TEXT)
    teams.lock(place.workspace)
    cell = teams.environment(place.workspace)
    lock = flow.team_lock(place.workspace, cell)
    assert lock is not None

    def kept(name: str) -> dict[str, Any]:
        return {"sha256": small.put(place.store, name.encode()), "size": len(name)}

    wheels = tuple(replace(w, **kept(w.name)) for w in lock.wheels)
    debs = tuple(replace(p, **kept(p.name)) for p in lock.debian)
    flow.write_lock(place.workspace, cell, replace(lock, wheels=wheels, debian=debs))
    write_all(place.workspace.folder(cell), place.workspace.rendered(cell))
    return place


def test_an_environment_brings_the_image_of_its_row(vision: Place, tell: Tell, tmp_path: Path) -> None:
    name = teams.environment(vision.workspace).name
    told = tell("archive", name, "--to", str(tmp_path / "kept"))
    assert told[0] == 0, told
    layout, manifest = bundle(tmp_path / "kept")
    held = titles(manifest)
    document = json.loads(layout.read(manifest.document))
    (context,) = document["contexts"]
    assert (document["cell"], context["name"], context["folder"]) == (name, "row", "base/0")
    row = oci.describe(vision.docker.folder / "image.tar")
    blobs = {f"base/0/blobs/sha256/{d[7:]}" for d in (row.config_digest, *(of.digest for of in row.layers))}
    assert blobs <= held and {"team/packages.sh", "team/finish.py", "team-lock.json", "lock.json"} <= held
    shutil.rmtree(vision.store.root)
    assert tell("rebuild", str(tmp_path / "kept"), "--offline")[0] == 0
    asked = vision.docker.asked[-1]
    assert f"/base/0@{row.manifest_digest}" in asked and "--build-context team=" in asked
    assert vision.leftovers() == []
