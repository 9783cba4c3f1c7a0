"""What each command prints and writes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matrices
import pytest
import small
from small import Place
from tfenv import build, buildx, digest, pipeline, render
from tfenv.engine import Completed
from tfenv.errors import NotReadyError, UsageError
from tfenv.fetch import MissingInputs
from tfenv.lock import Resolvers, write_lock
from tfenv.lockfile import LOCK_NAME, dump_lock, lock_hash
from tfenv.model import Cell, Lock
from tfenv.report import Check, Report
from tfenv.report import Host as ReportHost

CELL = small.CELL
OLD = "sha256:" + "0" * 64


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return small.place(tmp_path, monkeypatch, small.TWO_BASES)


Tell = Callable[..., tuple[int, str, str]]


def data(told: tuple[int, str, str], code: int = 0) -> Any:
    """The one JSON document that was printed."""
    assert told[0] == code, told
    (line,) = told[1].splitlines()
    return json.loads(line)


def folder(here: Place) -> Path:
    return here.workspace.folder(here.cell)


# list


def test_list_names_cells_their_state_and_aliases(two: Place, tell: Tell) -> None:
    (two.workspace.folder(two.workspace.matrix.cells[1]) / LOCK_NAME).unlink()
    code, out, err = tell("list")
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first == f"{CELL}  locked  2.15.1-cu12, 2.15.1, 2.15-cu12, 2.15, latest"
    assert second.split("  ")[1] == "not locked"


def test_list_says_that_a_lock_is_of_other_requirements(two: Place, tell: Tell) -> None:
    matrix = two.workspace.matrix_path
    matrix.write_text(matrix.read_text().replace("requirements: [six]", "requirements: [six, attrs]"))
    first = tell("list")[1].splitlines()[0]
    assert f"  lock out of date (type: tfenv lock {CELL} --upgrade wheels)  " in first


def test_list_as_json(here: Place, tell: Tell) -> None:
    (told,) = data(tell("list", "--json"))
    assert (told["cell"], told["tensorflow"], told["cuda"], told["cudnn"]) == (CELL, "2.15.1", "12.2", "8.9")
    assert (told["python"], told["base"], told["locked"], told["manifest"]) == (
        "3.11",
        "debian12",
        True,
        None,
    )
    assert told["tags"] == small.TAGS
    assert "2.15-cu12-debian12" in told["aliases"] and CELL not in told["aliases"]


def test_list_says_what_is_recorded(here: Place, tell: Tell) -> None:
    tell("build", CELL, "--record")
    (told,) = data(tell("list", "--json"))
    assert told["manifest"] == here.docker.manifest


def test_list_says_what_is_refused_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell: Tell
) -> None:
    why = "cuDNN 8.9 has a bug with this base"
    text = small.TWO_BASES + f"exclude:\n  - base: debian13\n    why: {why}\n"
    small.place(tmp_path, monkeypatch, text)
    name = CELL.replace("debian12", "debian13")
    assert f"{name}  refused: " in tell("list", "--refused")[1]
    told = data(tell("list", "--refused", "--json"))
    assert [cell["cell"] for cell in told["cells"]] == [CELL]
    assert told["refused"][0]["cell"] == name and why in told["refused"][0]["why"]
    _, out, err = tell("list")
    assert "refused" not in out and err == "1 refused; why: tfenv list --refused\n"


def test_list_says_that_there_is_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell: Tell) -> None:
    text = matrices.TEXT + "exclude:\n  - base: debian12\n    why: none today\n"
    small.place(tmp_path, monkeypatch, text)
    code, out, err = tell("list")
    assert (code, out) == (0, "")
    assert err.startswith("no cell: ") and err.endswith("1 refused; why: tfenv list --refused\n")


@pytest.mark.parametrize("line", [["list"], ["run", "--print", "2.15"]])
def test_from_any_folder_the_checkouts_cells_are_meant(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, line: list[str]
) -> None:
    own = here.workspace.start / "matrix.yaml"
    monkeypatch.setattr("tfenv.resources.checkout_matrix", lambda: own)
    monkeypatch.chdir(here.root)
    code, out, err = tell(*line)
    assert code == 0 and CELL in out
    assert err.splitlines()[0] == f"no matrix.yaml here or above: using {own}"


# schema


def test_schema_is_printed_or_written(here: Place, tell: Tell, tmp_path: Path) -> None:
    code, out, _ = tell("schema")
    assert code == 0
    printed = json.loads(out)
    assert data(tell("schema", "--json")) == printed
    assert tell("schema", "--output", str(tmp_path / "s.json"))[1] == f"{tmp_path / 's.json'} written\n"
    assert json.loads((tmp_path / "s.json").read_text()) == printed


def test_schema_needs_no_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell: Tell) -> None:
    monkeypatch.chdir(tmp_path)
    assert tell("schema")[0] == 0


# render


def test_render_writes_what_is_missing_and_nothing_else(here: Place, tell: Tell) -> None:
    (folder(here) / "Dockerfile").unlink()
    before = (folder(here) / "requirements.lock").stat().st_mtime_ns
    assert tell("render") == (0, f"{CELL}: Dockerfile written\n", "")
    assert (folder(here) / "requirements.lock").stat().st_mtime_ns == before
    assert tell("render") == (0, "1 current\n", "")
    assert tell("render", CELL) == (0, f"{CELL}: current\n", "")


def test_render_as_json(here: Place, tell: Tell) -> None:
    (folder(here) / "Dockerfile").write_text("")
    told = data(tell("render", CELL, "--json"))
    assert told == {"cell": CELL, "files": ["Dockerfile", "requirements.lock"], "changed": ["Dockerfile"]}


def test_render_check_passes_when_current(here: Place, tell: Tell) -> None:
    assert tell("render", "--check") == (0, "1 current\n", "")


@pytest.mark.parametrize("name", ["Dockerfile", "requirements.lock"])
@pytest.mark.parametrize(
    "change", [Path.unlink, lambda path: path.write_text("x")], ids=["missing", "changed"]
)
def test_render_check_finds_drift_and_writes_nothing(
    here: Place, tell: Tell, name: str, change: Callable[[Path], object]
) -> None:
    change(folder(here) / name)
    before = sorted((path.name, path.read_bytes()) for path in folder(here).iterdir())
    code, out, err = tell("render", "--check")
    assert (code, out) == (1, "")
    assert f"images/{CELL}/{name}" in err and "tfenv render" in err
    assert sorted((path.name, path.read_bytes()) for path in folder(here).iterdir()) == before


def test_render_check_finds_a_cell_without_a_lock(here: Place, tell: Tell) -> None:
    (folder(here) / LOCK_NAME).unlink()
    code, _, err = tell("render", "--check")
    assert code != 0 and f"tfenv lock {CELL}" in err
    assert tell("render") == (0, "", ""), "without --check only what is locked counts"


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_render_refuses_a_lock_of_other_templates(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr(render, "template_version", lambda kind: "f" * 64)
    code, out, err = tell("render", *options)
    assert code != 0 and out == ""
    assert "another version of the templates" in err and f"tfenv lock {CELL}" in err


def test_render_check_goes_on_after_a_cell_that_drifts(two: Place, tell: Tell) -> None:
    (folder(two) / "Dockerfile").unlink()
    code, out, err = tell("render", "--check")
    assert code == 1
    assert CELL in err
    assert out == "1 current\n"


# lock


def resolvers(lock: Lock, **changes: Any) -> Resolvers:
    found: dict[str, Any] = {
        "debian": lambda suite, packages: (lock.debian, lock.debian_locked_at),
        "wheels": lambda cell, platform: lock.wheels,
        "uv": lambda: lock.uv,
        "digest": lambda image: matrices.DIGEST,
    }
    return Resolvers(**{**found, **changes})


@pytest.fixture
def resolving(here: Place, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Resolvers that give what is locked; the list says which were asked."""
    asked: list[str] = []
    lock = here.lock

    def ask(kind: str, answer: Any) -> Callable[..., Any]:
        return lambda *_: (asked.append(kind), answer)[1]

    made = Resolvers(
        debian=ask("debian", (lock.debian, lock.debian_locked_at)),
        wheels=ask("wheels", lock.wheels),
        uv=lambda: lock.uv,
        digest=ask("digest", matrices.DIGEST),
    )
    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: made)
    return asked


def test_lock_keeps_what_is_locked(here: Place, resolving: list[str], tell: Tell) -> None:
    pinned = here.lock
    code, out, err = tell("lock", CELL)
    assert code == 0 and err == ""
    assert resolving == []
    assert "4 wheels" in out and "4 Debian packages" in out and "none newer than 2024-03-16" in out
    assert (here.lock.debian, here.lock.wheels) == (pinned.debian, pinned.wheels)
    assert tell("lock", CELL)[1].startswith(f"{CELL}: unchanged")


def _fewer_locks(place: Place, *names: str) -> None:
    for name in names:
        (place.workspace.images / name / LOCK_NAME).unlink()


def test_lock_all_tells_the_cells_in_the_order_of_the_matrix(
    two: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever is resolved first: here the first one is only when the second one is."""
    first, second = (cell.name for cell in two.workspace.matrix.cells)
    lock, done = two.lock, threading.Event()

    def wheels(cell: Cell, platform: str) -> Any:
        if cell.name == first:
            assert done.wait(30)
        else:
            done.set()
        return lock.wheels

    _fewer_locks(two, first, second)
    made = resolvers(lock, wheels=wheels)
    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: made)
    code, out, err = tell("lock", "--all")
    assert code == 0, err
    assert [line.partition(":")[0] for line in out.splitlines()] == [first, second]
    assert f"{first}: resolving everything" in err and f"{second}: resolving everything" in err
    assert tell("lock", "--all", "--check")[0] == 0


@pytest.mark.parametrize("failing", [0, 1])
def test_lock_all_goes_on_after_a_cell_that_cannot_be_resolved(
    two: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    names = [cell.name for cell in two.workspace.matrix.cells]
    lock = two.lock

    def wheels(cell: Cell, platform: str) -> Any:
        if cell.name == names[failing]:
            raise UsageError("no wheel for that", remedy="ask for another")
        return lock.wheels

    _fewer_locks(two, *names)
    made = resolvers(lock, wheels=wheels)
    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: made)
    code, out, err = tell("lock", "--all", "--json")
    assert code == 2 and "no wheel for that" in err
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["cell"] for one in told] == names
    assert ["error" in one for one in told] == [n == failing for n in range(2)]
    assert [two.workspace.lock_path(cell).exists() for cell in two.workspace.matrix.cells] == [
        n != failing for n in range(2)
    ]


def test_lock_all_asks_once_for_what_the_cells_share(
    tmp_path: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = matrices.TEXT[matrices.TEXT.index("  - tensorflow") :].replace("2.15.1", "2.15.0.post1")
    place = small.place(tmp_path, monkeypatch, matrices.TEXT + row)
    names = [cell.name for cell in place.workspace.matrix.cells]
    assert len(names) == 2
    asked: list[str] = []
    lock = place.lock

    def ask(what: str, answer: Any) -> Callable[..., Any]:
        def answered(*_: object) -> Any:
            asked.append(what)
            return answer

        return answered

    made = resolvers(lock, debian=ask("debian", (lock.debian, lock.debian_locked_at)), uv=ask("uv", lock.uv))
    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: made)
    assert tell("lock", "--all", "--upgrade", "all")[0] == 0
    assert sorted(asked) == ["debian", "uv"]


def test_lock_all_ends_at_once_on_ctrl_c(two: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tfenv.lock.write_lock", stop)
    made = resolvers(two.lock)
    _fewer_locks(two, *(cell.name for cell in two.workspace.matrix.cells))
    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: made)
    assert tell("lock", "--all")[0] == 130


def test_lock_says_how_to_lock_the_base_of_an_image(
    tmp_path: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = small.place(tmp_path, monkeypatch, matrices.with_ubuntu(only=True))
    cell = place.cell.name
    made = resolvers(place.lock)
    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: made)
    assert not place.lock.complete
    told = data(tell("lock", cell, "--json"))
    assert told["complete"] is False
    code, out, _ = tell("lock", cell)
    assert (
        code == 0 and f"the digest of {matrices.IMAGE} is not known: tfenv lock {cell} --upgrade base" in out
    )
    code, out, _ = tell("lock", cell, "--upgrade", "base")
    assert code == 0 and "is not known" not in out
    assert place.lock.base_digest == matrices.DIGEST and place.lock.complete
    assert data(tell("lock", cell, "--json"))["changed"] is False, "kept without --upgrade"


def test_an_image_without_a_digest_gets_no_canonical_name(
    tmp_path: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = small.place(tmp_path, monkeypatch, matrices.with_ubuntu(only=True))
    cell = place.cell.name
    assert tell("build", cell)[0] == 0
    assert f"tfenv:{cell}-unlocked" in place.images.tags and f"tfenv:{cell}" not in place.images.tags
    labels = place.inputs.files["Dockerfile"]
    assert not place.inputs.locked and 'dev.tfenv.locked="false"' in labels and "# UNLOCKED" in labels


def test_an_image_with_its_digest_gets_its_canonical_name(
    tmp_path: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = matrices.with_ubuntu(f"{matrices.IMAGE}@{matrices.DIGEST}", only=True)
    place = small.place(tmp_path, monkeypatch, text)
    assert tell("build", place.cell.name)[0] == 0
    assert f"tfenv:{place.cell.name}" in place.images.tags
    assert 'dev.tfenv.locked="true"' in place.inputs.files["Dockerfile"]


@pytest.mark.parametrize("what", ["wheels", "debian", "all"])
def test_lock_resolves_only_what_is_asked_for(
    here: Place, resolving: list[str], tell: Tell, what: str
) -> None:
    assert tell("lock", CELL, "--upgrade", what)[0] == 0
    assert set(resolving) == ({"wheels", "debian"} if what == "all" else {what})


def test_lock_check_writes_nothing(here: Place, resolving: list[str], tell: Tell) -> None:
    tell("lock", CELL)
    assert tell("lock", CELL, "--check")[0] == 0
    (folder(here) / LOCK_NAME).unlink()
    code, out, err = tell("lock", CELL, "--check")
    assert (code, out) == (1, "")
    assert "missing" in err
    assert not (folder(here) / LOCK_NAME).exists()


def test_lock_as_json(here: Place, resolving: list[str], tell: Tell) -> None:
    told = data(tell("lock", CELL, "--json"))
    assert told["lock"] == f"sha256:{lock_hash(here.lock)}"
    assert (told["wheels"], told["debian"]) == (4, 4)
    assert told["bytes"] == sum(item.size for item in (*here.lock.wheels, *here.lock.debian))


# build


def test_build_prints_the_digest_and_the_tags(here: Place, tell: Tell) -> None:
    code, out, _ = tell("build", "2.15-cu12")
    assert code == 0
    assert out.splitlines()[0].startswith(f"{CELL}: built")
    assert here.docker.manifest in out
    assert [line.strip() for line in out.splitlines()[1:]] == small.TAGS
    assert tell("build", "2.15-cu12")[1].startswith(f"{CELL}: already built")


def test_build_as_json(here: Place, tell: Tell) -> None:
    told = data(tell("build", CELL, "--json"))
    assert (told["cell"], told["manifest"], told["reused"]) == (CELL, here.docker.manifest, False)
    assert told["tags"] == small.TAGS
    assert Path(told["archive"]).is_file() and Path(told["log"]).is_file()
    assert set(told["seconds"]) == {"fetch", "build", "store"}
    assert data(tell("build", CELL, "--json"))["reused"] is True


def test_build_records_the_digest_when_asked(here: Place, tell: Tell) -> None:
    tell("build", CELL)
    assert digest.read(folder(here)) is None
    tell("build", CELL, "--record")
    recorded = digest.read(folder(here))
    assert recorded is not None and recorded.manifest == here.docker.manifest
    assert data(tell("build", CELL, "--json"))["likeness"] == "identical"


def test_build_check_reproducible(here: Place, tell: Tell) -> None:
    told = data(tell("build", CELL, "--check-reproducible", "--json"))
    assert told["reproducible"] is True and len(told["seconds"]) == 2
    assert here.docker.builds == 2
    assert here.images.tags[f"tfenv:{CELL}"] == here.docker.manifest


def test_build_check_reproducible_that_differs_moves_no_tag(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = buildx.run_build

    def then_another(*given: Any, **more: Any) -> Any:
        result = real(*given, **more)
        here.docker.will_build(small.tarred([small.file("b", b"another")]))
        return result

    monkeypatch.setattr(buildx, "run_build", then_another)
    code, out, err = tell("build", CELL, "--check-reproducible", "--record")
    assert (code, out) == (1, "") and "is not reproducible here" in err
    assert here.images.tags == {} and digest.read(folder(here)) is None


def differing(here: Place, **changes: Any) -> digest.Digest:
    """Record another digest for the same inputs."""
    built = build.build(here.inputs, here.host)
    recorded = replace(built.digest, manifest=OLD, diff_ids=(OLD, OLD), **changes)
    (folder(here) / digest.FILE_NAME).write_text(digest.dump(recorded))
    return recorded


@pytest.mark.parametrize("options", [(), ("--no-cache",), ("--check-reproducible",)])
def test_build_refuses_what_the_same_builder_did_not_record(
    here: Place, tell: Tell, options: tuple[str, ...]
) -> None:
    recorded = differing(here)
    code, out, err = tell("build", CELL, *options)
    assert (code, out) == (1, "")
    assert "no tag was moved" in err and OLD in err and "--record accepts it" in err
    assert here.images.tags == {} and digest.read(folder(here)) == recorded


@pytest.mark.parametrize("options", [(), ("--check-reproducible",)])
def test_build_record_accepts_what_differs(here: Place, tell: Tell, options: tuple[str, ...]) -> None:
    differing(here)
    told = data(tell("build", CELL, "--record", "--json", *options))
    assert told["likeness"] == "different"
    recorded = digest.read(folder(here))
    assert recorded is not None and recorded.manifest == here.docker.manifest
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)
    assert data(tell("build", CELL, "--json"))["likeness"] == "identical"


def test_build_says_that_another_builder_gave_something_else(here: Place, tell: Tell) -> None:
    differing(here, builder="BuildKit 0.20.0")
    code, out, err = tell("build", CELL)
    assert code == 0 and "(different)" in out
    assert "BuildKit 0.20.0" in err and "Docker Engine 26.1.5" in err
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)


def test_build_stage_prints_a_line_that_can_be_typed(here: Place, tell: Tell, tmp_path: Path) -> None:
    code, out, _ = tell("build", CELL, "--stage", str(tmp_path / "stage here"))
    assert code == 0
    argv = shlex.split(out)
    assert argv[1:3] == ["buildx", "build"]
    assert (Path(argv[-1]) / "Dockerfile").is_file()
    assert here.docker.builds == 0
    assert data(tell("build", CELL, "--stage", str(tmp_path / "two"), "--json"))["argv"][1] == "buildx"
    assert tell("build", CELL, "--stage", str(tmp_path / "two"))[0] == 2


def test_build_stage_takes_one_cell(two: Place, tell: Tell, tmp_path: Path) -> None:
    every = [cell.name for cell in two.workspace.matrix.cells]
    for cells in (("--all",), every):
        code, out, err = tell("build", *cells, "--stage", str(tmp_path / "stage"))
        assert (code, out) == (2, "") and "--stage takes one cell" in err
    assert not (tmp_path / "stage").exists()
    assert tell("build", every[1], "--stage", str(tmp_path / "stage"))[0] == 0


def test_build_stage_refuses_what_is_not_what_is_committed(here: Place, tell: Tell, tmp_path: Path) -> None:
    (folder(here) / "Dockerfile").write_text("FROM scratch\n")
    code, out, err = tell("build", CELL, "--stage", str(tmp_path / "stage"))
    assert (code, out) == (1, "") and f"images/{CELL}/Dockerfile" in err
    assert not (tmp_path / "stage").exists()


# verify and up


def report(verdict: Any = "unverified") -> Report:
    return Report(
        image=f"tfenv:{CELL}",
        digest="sha256:" + "1" * 64,
        suite="smoke",
        suite_hash="2" * 64,
        verdict=verdict,
        reason="no GPU" if verdict == "unverified" else "",
        host=ReportHost(),
        checks=(Check(name="import", status="pass"),),
        started=0,
        seconds=1.0,
    )


@pytest.fixture
def verified(here: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What the check of an image was given, where tags pointed then, and what it gives (``report``)."""
    given: dict[str, Any] = {"report": report()}

    def check(cell: Any, lock: Any, image: Any, host: Any, **more: Any) -> tuple[Report, Path]:
        given.update(more, cell=cell.name, lock=lock, image=image, tags=dict(here.images.tags))
        assert here.images.inspect(image.id) == image.id, "it is run by its digest"
        return given["report"], tmp_path / "reports"

    monkeypatch.setattr(pipeline, "check", check)
    return given


@pytest.mark.parametrize(("verdict", "code"), [("pass", 0), ("fail", 1), ("unverified", 3)])
def test_verify_ends_with_the_verdicts_code(
    here: Place, tell: Tell, verified: dict[str, Any], verdict: str, code: int
) -> None:
    tell("build", CELL)
    verified["report"] = report(verdict)
    told = data(tell("verify", CELL, "--json", "--suite", "full", "--gpus", "none"), code)
    assert (told["verdict"], told["cell"]) == (verdict, CELL)
    assert told["report"]["results"]
    assert (verified["suite"], verified["gpus"]) == ("full", "none")
    assert tell("verify", CELL)[1].startswith(f"{CELL}: ")


def test_verify_takes_the_image_by_digest_and_the_lock_that_it_was_built_from(
    here: Place, tell: Tell, verified: dict[str, Any]
) -> None:
    tell("build", CELL)
    assert tell("verify", CELL)[0] == 3
    image = verified["image"]
    assert (image.name, image.id) == (small.TAGS[0], here.docker.manifest)
    assert verified["lock"] == here.lock


def test_verify_where_there_is_no_image(here: Place, tell: Tell, verified: dict[str, Any]) -> None:
    code, out, err = tell("verify", CELL)
    assert (code, out) == (2, "") and "tfenv build" in err and CELL in err
    assert "image" not in verified


def test_verify_refuses_an_image_of_another_lock_than_the_committed_one(
    here: Place, tell: Tell, verified: dict[str, Any]
) -> None:
    tell("build", CELL)
    lock = replace(here.lock, debian_locked_at="2025-12-01T00:00:00Z")
    write_lock(lock, here.workspace.images)
    code, out, err = tell("verify", CELL)
    assert (code, out) == (2, "") and f"remedy: type: tfenv build {CELL}" in err
    assert "image" not in verified
    assert tell("render")[0] == 0 and tell("build", CELL)[0] == 0
    assert tell("verify", CELL)[0] == 3
    assert verified["lock"] == lock


def test_verify_refuses_an_image_of_somebody_else(here: Place, tell: Tell, verified: dict[str, Any]) -> None:
    here.docker.keep(small.TAGS[0], "sha256:foreign")
    code, _, err = tell("verify", CELL)
    assert code == 2 and "was not built from the lock" in err
    assert "image" not in verified


def test_up_builds_and_verifies_what_is_committed(here: Place, tell: Tell, verified: dict[str, Any]) -> None:
    told = data(tell("up", "2.15-cu12", "--json"), 3)
    assert (told["locked"], told["verdict"], told["manifest"]) == (True, "unverified", here.docker.manifest)
    assert (told["tags"], told["reason"], told["likeness"]) == (small.TAGS, "no GPU", "not recorded")
    assert (verified["lock"], verified["image"].id) == (here.lock, here.docker.manifest)
    code, out, err = tell("up", CELL)
    assert (code, "NOT" in out) == (3, False)
    assert "no GPU" in err.splitlines()[-1], "the verdict is said last"


@pytest.mark.parametrize(("verdict", "code"), [("pass", 0), ("unverified", 3)])
def test_up_moves_the_tags_after_a_verification_that_found_no_fault(
    here: Place, tell: Tell, verified: dict[str, Any], verdict: str, code: int
) -> None:
    here.images.tags = dict.fromkeys(small.TAGS, OLD)
    verified["report"] = report(verdict)
    ended, out, err = tell("up", CELL)
    assert ended == code
    assert verified["tags"] == dict.fromkeys(small.TAGS, OLD), "no tag had moved when it was verified"
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)
    assert here.images.passing == {}
    assert all(tag in out for tag in small.TAGS) and "no tag was moved" not in err


def stays_as(here: Place, err: str) -> str | None:
    """The image under the name that is told after a verification that failed."""
    found = re.search(r"no tag was moved, the image stays as (\S+)", " ".join(err.split()))
    return here.images.inspect(found[1]) if found else None


def test_up_takes_no_tag_from_an_image_that_fails_later(
    here: Place, tell: Tell, verified: dict[str, Any]
) -> None:
    tell("build", CELL)
    verified["report"] = report("fail")
    code, _, err = tell("up", CELL)
    assert code == 1
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)
    assert stays_as(here, err) == here.docker.manifest


@pytest.mark.parametrize("builder", ["", "own"])
def test_up_moves_no_tag_after_a_failed_verification_and_says_so(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any], builder: str
) -> None:
    monkeypatch.setenv("FAKE_BUILDER", builder)
    here.images.tags = dict.fromkeys(small.TAGS, OLD)
    verified["report"] = report("fail")
    code, out, err = tell("up", CELL)
    assert code == 1
    assert here.images.tags == dict.fromkeys(small.TAGS, OLD)
    assert not any(tag in out.split() for tag in small.TAGS)
    assert stays_as(here, err) == here.docker.manifest
    assert data(tell("up", CELL, "--json"), 1)["tags"] == []
    verified["report"] = report("pass")
    assert tell("up", CELL)[0] == 0
    assert here.docker.builds == 1
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)


def _debian_gone(here: Place, monkeypatch: pytest.MonkeyPatch, **gone: Any) -> Lock:
    """The mirror has newer Debian packages; returns the lock of today."""
    old = here.lock.debian[0]
    here.store.path(old.sha256).unlink()
    newer = replace(old, version="2.0", path=old.path.replace("_1.0_", "_2.0_"))
    newer = replace(newer, sha256=hashlib.sha256(b"newer").hexdigest(), size=5)
    today = (newer, *here.lock.debian[1:])

    def fetch(lock: Lock, *_: object, **__: object) -> None:
        if old in lock.debian or gone.get("wheels"):
            raise MissingInputs(lock.cell, **{"debian": [old.filename], **gone})
        assert small.put(here.store, b"newer") == newer.sha256

    monkeypatch.setattr("tfenv.fetch.fetch", fetch)
    made = resolvers(here.lock, debian=lambda suite, packages: (today, here.lock.debian_locked_at))
    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: made)
    return replace(here.lock, debian=today)


def test_up_goes_on_with_todays_debian_and_says_so(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any]
) -> None:
    committed = dump_lock(here.lock)
    today = _debian_gone(here, monkeypatch)
    code, out, err = tell("up", CELL)
    assert code == 3
    assert "NOT the locked digest" in out
    assert "apt_1.0_amd64.deb" in err and "NOT the locked digest" in err
    assert "NOT the locked digest" in err.splitlines()[-1]
    assert verified["lock"].debian == today.debian
    assert here.images.tags == dict.fromkeys(small.UNLOCKED_TAGS, here.docker.manifest)
    assert (folder(here) / LOCK_NAME).read_text() == committed, "a lock is only rewritten when asked"
    told = data(tell("up", CELL, "--json"), 3)
    assert (told["locked"], told["likeness"], told["tags"]) == (False, "not recorded", small.UNLOCKED_TAGS)
    assert "NOT the locked digest" in told["words"]


def test_up_with_todays_debian_leaves_the_canonical_name_alone(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any]
) -> None:
    here.images.tags = dict.fromkeys(small.TAGS, OLD)
    _debian_gone(here, monkeypatch)
    assert tell("up", CELL)[0] == 3
    assert here.images.tags == {
        **dict.fromkeys(small.UNLOCKED_TAGS, here.docker.manifest),
        small.TAGS[0]: OLD,
    }


def test_up_keeps_the_lock_of_today_and_verify_uses_it(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any]
) -> None:
    today = _debian_gone(here, monkeypatch)
    tell("up", CELL)
    kept = here.store.root / "locks" / f"{lock_hash(today)}.json"
    assert kept.read_text("utf-8") == dump_lock(today)
    verified.pop("lock")
    assert tell("verify", CELL)[0] == 3
    assert verified["lock"] == today
    assert (verified["image"].name, verified["image"].id) == (small.UNLOCKED_TAGS[0], here.docker.manifest)
    kept.unlink()
    code, _, err = tell("verify", CELL)
    assert code == 2 and f"tfenv build {CELL}" in err


def test_verify_prefers_the_image_of_the_committed_lock(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any]
) -> None:
    tell("build", CELL)
    locked = here.docker.manifest
    here.docker.will_build(small.tarred([small.file("newer")]))
    here.store.builds_dir.joinpath(f"{here.inputs.hash}.json").unlink()
    _debian_gone(here, monkeypatch)
    tell("up", CELL)
    assert here.images.tags[small.UNLOCKED_TAGS[0]] == here.docker.manifest != locked
    assert tell("verify", CELL)[0] == 3
    assert (verified["lock"], verified["image"].id) == (here.lock, locked)


@pytest.mark.parametrize(
    "gone", [{}, {"wheels": ["pip-24.0-py3-none-any.whl"]}], ids=["debian", "wheels too"]
)
def test_up_takes_the_recorded_image_that_the_engine_still_has(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any], gone: dict[str, Any]
) -> None:
    tell("build", CELL, "--record")
    recorded = here.docker.manifest
    here.store.builds_dir.joinpath(f"{here.inputs.hash}.json").unlink()
    here.images.tags = {small.TAGS[1]: recorded}
    here.docker.will_build(small.tarred([small.file("newer")]))
    _debian_gone(here, monkeypatch, **gone)
    code, out, err = tell("up", CELL)
    assert (code, here.docker.builds) == (3, 1), "nothing is built"
    assert "apt_1.0_amd64.deb" not in err and "the engine has the image of the recorded digest" in err
    assert "NOT the locked digest" not in out + err
    assert (verified["lock"], verified["image"].id) == (here.lock, recorded)
    assert here.images.tags == dict.fromkeys(small.TAGS, recorded)
    told = data(tell("up", CELL, "--json"), 3)
    assert (told["locked"], told["likeness"], told["manifest"]) == (True, "identical", recorded)
    verified["report"] = report("fail")
    assert data(tell("up", CELL, "--json"), 1)["tags"] == []


def test_up_with_an_empty_store_takes_the_recorded_image_of_the_engine(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any], tmp_path: Path
) -> None:
    tell("build", CELL, "--record")
    monkeypatch.setenv("TFENV_CACHE", str(tmp_path / "empty"))
    told = data(tell("up", CELL, "--json"), 3)
    assert (told["manifest"], told["likeness"]) == (here.docker.manifest, "identical")
    assert here.docker.builds == 1 and not (tmp_path / "empty" / "blobs").exists()
    here.images.loaded.clear()
    code, _, err = tell("up", CELL)
    assert (code, "no server answers" in err) == (4, True), "without it everything would have to be fetched"


@pytest.mark.parametrize(
    ("gpus", "there", "code"), [("2", 1, 4), ("2", 2, 3), ("auto", 0, 3), ("none", 0, 3)]
)
def test_up_asks_for_the_gpus_before_anything_is_built(
    here: Place,
    tell: Tell,
    monkeypatch: pytest.MonkeyPatch,
    verified: dict[str, Any],
    gpus: str,
    there: int,
    code: int,
) -> None:
    listed = "".join(f"{number}\n" for number in range(there))
    monkeypatch.setattr("tfenv.verify_elsewhere.smi", lambda argv: Completed(0, listed, ""))
    ended, _, err = tell("up", CELL, "--gpus", gpus)
    assert (ended, here.docker.builds) == (code, 0 if code == 4 else 1)
    assert ("this host does not have the GPUs 0,1" in err) is (code == 4)


def test_up_does_not_take_an_image_that_was_recorded_for_other_inputs(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any]
) -> None:
    tell("build", CELL, "--record")
    recorded = digest.read(folder(here))
    assert recorded is not None
    (folder(here) / digest.FILE_NAME).write_text(digest.dump(replace(recorded, inputs="f" * 64)))
    here.store.builds_dir.joinpath(f"{here.inputs.hash}.json").unlink()
    _debian_gone(here, monkeypatch)
    assert data(tell("up", CELL, "--json"), 3)["locked"] is False
    assert here.docker.builds == 2


def test_up_marks_the_image_as_not_the_locked_one(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any]
) -> None:
    _debian_gone(here, monkeypatch)
    texts: list[str] = []
    real = render.render

    def spy(*given: Any, **more: Any) -> dict[str, str]:
        files = real(*given, **more)
        texts.append(files["Dockerfile"])
        return files

    monkeypatch.setattr(render, "render", spy)
    tell("up", CELL)
    assert f'{render.LABEL_PREFIX}.locked="false"' in texts[-1]


def test_build_refuses_where_up_goes_on(here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    _debian_gone(here, monkeypatch)
    code, out, err = tell("build", CELL)
    assert (code, out) == (1, "")
    assert "apt_1.0_amd64.deb" in err and "--upgrade debian" in err
    assert here.images.tags == {}


def test_up_does_not_go_on_without_a_wheel(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch, verified: dict[str, Any]
) -> None:
    _debian_gone(here, monkeypatch, wheels=["pip-24.0-py3-none-any.whl"])
    code, _, err = tell("up", CELL)
    assert code == 1
    assert "pip-24.0" in err and "today's versions: this is" not in err
    assert here.images.tags == {} and "cell" not in verified


def test_up_does_not_go_on_without_a_network(here: Place, tell: Tell, verified: dict[str, Any]) -> None:
    here.store.path(here.lock.debian[0].sha256).unlink()
    code, _, err = tell("up", CELL)
    assert code == 4 and "no server answers" in err
    assert here.images.tags == {} and "cell" not in verified


# run


def test_run_prints_the_line(here: Place, tell: Tell) -> None:
    code, out, _ = tell("run", "--print", "--gpus", "none", "2.15-cu12", "python", "-c", "print('a b')")
    assert code == 0
    argv = shlex.split(out)
    assert argv[:3] == [str(here.docker.path), "run", "--rm"]
    assert argv[-4:] == [f"tfenv:{CELL}", "python", "-c", "print('a b')"]
    assert "--gpus" not in argv
    assert any("/workspace" in word for word in argv)


def test_run_passes_on_what_follows_the_cell(here: Place, tell: Tell) -> None:
    _, out, _ = tell("run", "--print", "2.15", "python", "--print", "-h", "--json")
    assert shlex.split(out)[-4:] == ["python", "--print", "-h", "--json"]


def test_run_takes_dockers_own_options(here: Place, tell: Tell) -> None:
    options = ["--read-only", "--no-workdir", "-v", "/a:/b", "-p", "8888:8888", "--gpus", "device=0,1"]
    options += ["-e", "A=b c", "--env", "TOKEN"]
    told = data(tell("run", "--print", "--json", *options, "2.15"))
    argv = told["argv"]
    assert told["cell"] == CELL
    assert argv[argv.index("--gpus") + 1] == '"device=0,1"'
    assert {"--read-only", "/a:/b", "8888:8888"} <= set(argv)
    assert not any("/workspace" in word for word in argv)
    assert argv[argv.index("A=b c") - 1] == argv[argv.index("TOKEN") - 1] == "-e"


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("0,1", '"device=0,1"'),
        ("2", "2"),
        ('"device=0,1"', '"device=0,1"'),
        ("device=0", "device=0"),
        ("driver=nvidia", "driver=nvidia"),
        ("all,capabilities=utility", "all,capabilities=utility"),
        ('"device=0,1",capabilities=compute', '"device=0,1",capabilities=compute'),
    ],
)
def test_run_takes_gpus_as_verify_does_or_as_docker(here: Place, tell: Tell, typed: str, given: str) -> None:
    argv = data(tell("run", "--print", "--json", "--gpus", typed, "2.15"))["argv"]
    assert argv[argv.index("--gpus") + 1] == given


@pytest.mark.parametrize("typed", ["foo", "2,2", "device=", "0", "all,all", "count=2,device=0"])
def test_run_refuses_gpus_that_docker_would(here: Place, tell: Tell, typed: str) -> None:
    code, out, err = tell("run", "--print", "--gpus", typed, "2.15")
    assert (code, out) == (2, "")
    assert "a list without repeats" in err and "all,capabilities=utility" in err


def test_run_print_needs_no_engine(here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_BUILD", "no-engine")
    assert tell("run", "--print", "2.15")[0] == tell("run", "--json", "2.15")[0] == 0
    code, out, err = tell("run", "2.15")
    assert (code, out) == (4, "") and "no Docker Engine answers" in err


def run_answers(here: Place) -> None:
    """The client has the cell's image, and says how it was run."""
    more = f'"image inspect") [ "$3" = tfenv:{CELL} ] ;;\n"run --rm") echo "ran $*"; exit 5 ;;\n'
    script = here.docker.path.read_text()
    here.docker.path.write_text(script.replace('"buildx build")', more + '"buildx build")', 1))


@pytest.mark.parametrize("named", ["by its path", "by its name"])
def test_run_becomes_docker(here: Place, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    run_answers(here)
    if named == "by its name":
        monkeypatch.setenv("TFENV_DOCKER", "docker")
        monkeypatch.setenv("PATH", str(here.docker.folder), prepend=os.pathsep)
    line = [Path(sys.executable).with_name("tfenv"), "run", "--gpus", "none", "2.15", "true", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (5, "")
    assert done.stdout.startswith("ran run --rm --pull=never ")
    assert done.stdout.endswith(f" tfenv:{CELL} true --json\n")


def test_run_of_an_image_that_is_not_there_says_how_to_build_it(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.execvp", lambda *_: pytest.fail("it was run"))
    code, out, err = tell("run", "--gpus", "none", "2.15", "true")
    assert (code, out) == (2, "")
    assert f"no image tfenv:{CELL} here" in err and f"remedy: type: tfenv build {CELL}" in err


# gc


def blobs(here: Place) -> set[str]:
    return {path.name for path in here.store.blobs_dir.iterdir()}


def test_gc_keeps_what_the_locks_and_their_builds_need(here: Place, tell: Tell) -> None:
    tell("build", CELL)
    needed = blobs(here)
    unused = small.put(here.store, b"of another year")
    told = data(tell("gc", "--json"))
    assert blobs(here) == needed and unused not in needed
    assert told["bytes"] >= len(b"of another year")
    assert data(tell("build", CELL, "--json"))["reused"] is True


def test_gc_frees_builds_that_no_lock_gives_any_more(here: Place, tell: Tell) -> None:
    archive = Path(data(tell("build", CELL, "--no-cache", "--json"))["archive"])
    here.docker.will_build(small.tarred([small.file("new")]))
    assert tell("build", CELL, "--no-cache")[0] == 0
    tell("gc")
    assert not archive.exists()
    assert data(tell("build", CELL, "--json"))["reused"] is True


def test_gc_dry_run_says_how_much_and_frees_nothing(here: Place, tell: Tell) -> None:
    small.put(here.store, b"x" * 20_000_000)
    before = blobs(here)
    code, out, err = tell("gc", "--dry-run")
    assert (code, err) == (0, "")
    assert out == f"would free 0.02 GB in 1 files of {here.store.root}\n"
    assert blobs(here) == before
    assert tell("gc")[1].startswith("freed 0.02 GB in 1 files")


def test_gc_counts_and_removes_what_a_failed_build_left(
    here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BUILD", "step-fails")
    tell("build", CELL)
    left = here.leftovers()
    assert left
    (here.store.root / "stage" / "image.oci.tar").write_bytes(b"x" * 30_000_000)
    needed = blobs(here)
    dry = data(tell("gc", "--dry-run", "--json"))
    assert dry["bytes"] >= 30_000_000
    assert here.leftovers()
    wet = data(tell("gc", "--json"))
    assert {**wet, "dry_run": True} == dry
    assert here.leftovers() == []
    assert blobs(here) == needed


def test_gc_removes_what_killed_builds_left_in_the_engine(here: Place, tell: Tell) -> None:
    tell("build", CELL)
    here.docker.keep("tfenv-building:0123456789abcdef", "sha256:1")
    tags = dict(here.images.tags)
    assert tell("gc", "--dry-run")[0] == 0
    assert not any(line.startswith("image") for line in here.docker.asked)
    assert list(here.images.passing) == ["tfenv-building:0123456789abcdef"]
    assert tell("gc")[0] == 0
    assert here.images.passing == {} and here.images.tags == tags
    assert here.images.inspect(CELL) is None and here.images.inspect(small.TAGS[0]) == here.docker.manifest


def test_gc_needs_no_engine(here: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFENV_DOCKER", "/nowhere/docker")
    monkeypatch.setenv("FAKE_BUILD", "no-engine")
    small.put(here.store, b"x" * 20_000_000)
    assert tell("gc")[1].startswith("freed 0.02 GB in 1 files")


def test_gc_frees_the_archive_of_other_inputs(
    here: Place, tell: Tell, fresh_templates: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Path(data(tell("build", CELL, "--json"))["archive"])
    monkeypatch.setattr("tfenv.buildx.EXPORT", ("compression=zstd", "compression-level=9"))
    tell("gc", "--dry-run")
    assert archive.exists()
    tell("gc")
    assert not archive.exists(), "the same lock built another way is another build"


def test_gc_of_everything_needs_no_matrix(
    here: Place, tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = tell("gc")
    assert code == 2 and "gc --everything" in err
    assert blobs(here)
    assert tell("gc", "--everything")[0] == 0
    assert blobs(here) == set()


def test_gc_frees_what_bisections_left_and_keeps_what_they_learnt(here: Place, tell: Tell) -> None:
    folder = here.store.root / "bisect" / "0123456789ab"
    (folder / "env").mkdir(parents=True)
    (folder / "env" / "wheel").write_bytes(b"x" * 20_000_000)
    (folder / "journal.jsonl").write_text("{}\n")
    assert tell("gc", "--dry-run")[1].startswith("would free 0.02 GB in 1 files")
    assert (folder / "env").is_dir()
    assert tell("gc")[1].startswith("freed 0.02 GB in 1 files")
    assert [path.name for path in folder.iterdir()] == ["journal.jsonl"]


def test_gc_removes_nothing_from_a_folder_of_others(
    here: Place, tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("snapshots", "stage", "bisect/0123456789ab/env"):
        (tmp_path / "home" / name / "mine").mkdir(parents=True)
    monkeypatch.setenv("TFENV_CACHE", str(tmp_path / "home"))
    code, _, err = tell("gc")
    assert code == 2 and "was not made by tfenv" in err
    for name in ("snapshots", "stage", "bisect/0123456789ab/env"):
        assert (tmp_path / "home" / name / "mine").is_dir()


def test_gc_frees_nothing_where_a_lock_is_damaged(here: Place, tell: Tell) -> None:
    (folder(here) / LOCK_NAME).write_text("{")
    before = blobs(here)
    code, out, err = tell("gc")
    assert code != 0 and out == "" and LOCK_NAME in err
    assert blobs(here) == before


def test_the_worst_code_of_several_cells_is_told(
    two: Place, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = pipeline.make

    def second_is_not_ready(workspace: Any, inputs: Any, host: Any, **more: Any) -> Any:
        if inputs.cell.base.name == "debian13":
            raise NotReadyError("no disk", remedy="free some")
        return real(workspace, inputs, host, **more)

    monkeypatch.setattr(pipeline, "make", second_is_not_ready)
    code, out, _ = tell("build", "--all", "--json")
    assert code == 4
    first, second = map(json.loads, out.splitlines())
    assert "manifest" in first
    assert second["error"] == {"message": "no disk", "remedy": "free some", "exit_code": 4}
