"""One cell from its lock to its tags: every stage may fail, and then no tag has moved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
from small import Place
from tfenv import build, buildx, cli, digest, lockfile, pipeline, render
from tfenv.container import ContainerError
from tfenv.errors import DriftError, IntegrityError, NotReadyError, UsageError
from tfenv.fetch import MissingInputs
from tfenv.images import Image
from tfenv.inputs import Inputs, unlocked
from tfenv.lock import Resolvers
from tfenv.matrix import load_matrix
from tfenv.model import Cell, Lock
from tfenv.report import Check, Report
from tfenv.report import Host as ReportHost

OLD = "sha256:" + "0" * 64


def made(here: Place, inputs: Inputs | None = None, **more: Any) -> pipeline.Made:
    inputs = inputs or pipeline.committed(here.workspace, here.cell)
    return pipeline.make(here.workspace, inputs, here.host, **more)


def tag(here: Place, what: pipeline.Made) -> tuple[str, ...]:
    return pipeline.tag(here.workspace, what, here.host)


def record(here: Place, **changes: Any) -> digest.Digest:
    """Build, tag and record; the record may be changed."""
    result = made(here)
    tag(here, result)
    pipeline.record(here.workspace, here.cell, result.built)
    found = digest.read(here.workspace.folder(here.cell))
    assert found == result.built.digest
    found = replace(found, **changes)
    (here.workspace.folder(here.cell) / digest.FILE_NAME).write_text(digest.dump(found))
    return found


def other(here: Place) -> Inputs:
    """What another lock than the committed one gives."""
    return unlocked(here.cell, replace(here.lock, epoch=here.lock.epoch + 1))


def kept_locks(here: Place) -> dict[str, Lock]:
    """The locks of images that are kept in the store."""
    paths = (here.store.root / "locks").glob("*.json")
    return {path.stem: lockfile.load_lock(path.read_text("utf-8")) for path in paths}


def images(here: Place) -> dict[str, bytes]:
    """The committed files."""
    return {str(path): path.read_bytes() for path in here.workspace.images.rglob("*") if path.is_file()}


# A build that succeeds.


def test_what_is_made_is_in_the_engine_and_has_no_tag_yet(here: Place) -> None:
    here.images.tags = {small.TAGS[0]: OLD}
    result = made(here)
    assert here.images.tags == {small.TAGS[0]: OLD}
    assert here.images.inspect(result.image.id) == here.docker.manifest
    assert here.images.passing == {result.image.name: here.docker.manifest}
    assert (result.image.cell, result.image.lock) == (here.cell.name, lockfile.lock_hash(here.lock))
    assert (result.built.inputs.locked, result.likeness) == (True, "not recorded")


def test_tagging_moves_the_canonical_name_and_the_aliases(here: Place) -> None:
    here.images.tags = {small.TAGS[0]: OLD, "tfenv:2.15-cu12": OLD}
    assert list(tag(here, made(here))) == small.TAGS
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)
    assert here.images.passing == {}


def test_a_builder_beside_the_engine_gives_the_same_tags(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BUILDER", "own")
    result = made(here)
    assert here.images.inspect(result.image.id) == here.docker.manifest
    assert list(tag(here, result)) == small.TAGS
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)


def test_an_image_of_another_lock_never_moves_the_canonical_name(here: Place) -> None:
    tag(here, made(here))
    locked = here.docker.manifest
    here.docker.will_build(small.tarred([small.file("other")]))
    result = made(here, other(here))
    assert list(tag(here, result)) == small.UNLOCKED_TAGS
    assert here.images.tags == {
        **dict.fromkeys(small.UNLOCKED_TAGS, here.docker.manifest),
        small.TAGS[0]: locked,
    }
    assert here.docker.manifest != locked


def test_only_a_lock_that_is_committed_nowhere_is_kept(here: Place) -> None:
    made(here)
    assert kept_locks(here) == {}
    inputs = other(here)
    made(here, inputs)
    assert kept_locks(here) == {inputs.lock_hash: inputs.lock}


# Held against what was recorded.


def test_what_was_recorded_is_identical(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    record(here)
    capsys.readouterr()
    assert made(here).likeness == made(here, no_cache=True).likeness == "identical"
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("recorded", [{"diff_ids": (OLD, OLD)}, {}], ids=["other content", "same content"])
def test_the_same_builder_giving_something_else_moves_no_tag_and_keeps_the_archive(
    here: Place, recorded: dict[str, Any]
) -> None:
    record(here, manifest=OLD, **recorded)
    tags, blobs = dict(here.images.tags), set(here.store.blobs_dir.iterdir())
    if recorded:
        here.docker.will_build(small.tarred([small.file("other")]))
    with pytest.raises(IntegrityError, match="no tag was moved") as caught:
        made(here, no_cache=True)
    assert "--record" in caught.value.remedy
    assert here.images.tags == tags
    built = build.find(here.inputs, here.store)
    assert built is not None and built.digest.manifest == here.docker.manifest
    assert set(here.store.blobs_dir.iterdir()) == blobs | {built.archive}, "to be looked at"
    with pytest.raises(IntegrityError):
        made(here)


def test_what_differs_is_taken_when_it_is_to_be_recorded(here: Place) -> None:
    record(here, manifest=OLD, diff_ids=(OLD, OLD))
    here.docker.will_build(small.tarred([small.file("other")]))
    result = made(here, no_cache=True, accept=True)
    assert result.likeness == "different"
    tag(here, result)
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)
    pipeline.record(here.workspace, here.cell, result.built)
    assert made(here).likeness == "identical"


@pytest.mark.parametrize(
    ("changes", "likeness"), [({}, "same content"), ({"diff_ids": (OLD, OLD)}, "different")]
)
def test_another_builder_giving_something_else_is_told_and_taken(
    here: Place, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], likeness: str
) -> None:
    record(here, manifest=OLD, builder="BuildKit 0.20.0", **changes)
    capsys.readouterr()
    result = made(here)
    assert result.likeness == likeness
    err = " ".join(capsys.readouterr().err.split())
    for word in ("Docker Engine 26.1.5", "BuildKit 0.20.0", OLD, here.docker.manifest):
        assert word in err
    assert list(tag(here, result)) == small.TAGS


def test_other_inputs_are_compared_with_nothing(here: Place) -> None:
    record(here, manifest=OLD, diff_ids=(OLD, OLD), inputs="f" * 64)
    assert made(here).likeness == "not recorded"
    assert made(here, other(here)).likeness == "not recorded"


# The recorded image.


def test_the_recorded_image_is_found_where_the_engine_still_has_it(here: Place) -> None:
    recorded = record(here)
    found = pipeline.recorded_image(here.workspace, here.inputs, here.host)
    assert found is not None
    assert (found.id, found.lock) == (recorded.manifest, here.inputs.lock_hash)


def test_no_image_is_recorded_for_other_inputs_nor_where_the_engine_has_none(here: Place) -> None:
    assert pipeline.recorded_image(here.workspace, here.inputs, here.host) is None
    record(here)
    assert pipeline.recorded_image(here.workspace, other(here), here.host) is None
    here.images.loaded.clear()
    here.images.tags = {here.docker.manifest: OLD}
    assert pipeline.recorded_image(here.workspace, here.inputs, here.host) is None, "another id"
    here.images.tags.clear()
    here.images.loaded.clear()
    assert pipeline.recorded_image(here.workspace, here.inputs, here.host) is None


# The lock of an image.


def image(here: Place, lock: str, cell: str = small.CELL) -> Image:
    return Image(small.TAGS[0], OLD, cell, lock)


def test_an_image_of_the_committed_lock_has_that_one(here: Place) -> None:
    found = image(here, lockfile.lock_hash(here.lock))
    assert pipeline.lock_of(here.workspace, here.cell, found, here.host) == here.lock


def test_an_image_of_a_kept_lock_has_that_one(here: Place) -> None:
    inputs = other(here)
    made(here, inputs)
    found = image(here, inputs.lock_hash)
    assert pipeline.lock_of(here.workspace, here.cell, found, here.host) == inputs.lock
    (here.workspace.folder(here.cell) / lockfile.LOCK_NAME).unlink()
    assert pipeline.lock_of(here.workspace, here.cell, found, here.host) == inputs.lock


@pytest.mark.parametrize("cell", [small.CELL, "", "2.14.1-cu11.8-cudnn8.7-py3.11-debian12"])
@pytest.mark.parametrize("lock", ["f" * 64, "", "../builds/x"])
def test_an_image_of_any_other_lock_is_refused(here: Place, cell: str, lock: str) -> None:
    made(here, other(here))
    with pytest.raises(UsageError, match="was not built from the lock") as caught:
        pipeline.lock_of(here.workspace, here.cell, image(here, lock, cell), here.host)
    assert caught.value.remedy == f"type: tfenv build {small.CELL}"


def test_a_kept_lock_is_of_its_own_cell_only(here: Place) -> None:
    inputs = other(here)
    made(here, inputs)
    with pytest.raises(UsageError, match="was not built from the lock"):
        pipeline.lock_of(here.workspace, here.cell, image(here, inputs.lock_hash, "another"), here.host)


# Verification.


@pytest.fixture
def suite(here: Place, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the verification suite was given."""
    given: dict[str, Any] = {}

    def verify_image(ref: str, declared: dict[str, Any], **more: Any) -> Report:
        given.update(more, ref=ref, declared=declared)
        return Report(
            image=ref,
            digest=more["digest"],
            suite=more["suite"],
            suite_hash="2" * 64,
            verdict="pass",
            host=ReportHost(),
            checks=(Check(name="import", status="pass"),),
            started=0,
            seconds=1.0,
        )

    monkeypatch.setattr("tfenv.verify.verify_image", verify_image)
    return given


def real() -> tuple[Cell, Lock]:
    """A cell of this project: the suite is only told of complete locks."""
    root = Path(__file__).resolve().parent.parent
    cell = next(cell for cell in load_matrix(root / "matrix.yaml").cells if cell.name == small.CELL)
    return cell, lockfile.read_lock(root / "images" / cell.name / lockfile.LOCK_NAME)


def test_an_image_is_verified_by_its_digest_and_not_by_a_tag_that_may_move(
    here: Place, suite: dict[str, Any], tmp_path: Path
) -> None:
    what = made(here).image
    report, folder = pipeline.check(
        *real(), what, here.host, suite="smoke", gpus="none", reports=tmp_path / "r"
    )
    assert suite["ref"] == suite["digest"] == here.docker.manifest
    assert here.docker.manifest in str(suite["declared"])
    assert (suite["suite"], suite["gpus"]) == ("smoke", False)
    assert (report.image, report.digest) == (here.cell.name, here.docker.manifest)
    assert folder.is_relative_to(tmp_path / "r") and any(folder.iterdir())


def test_reports_go_to_the_store_unless_a_folder_is_named(here: Place, suite: dict[str, Any]) -> None:
    _, folder = pipeline.check(*real(), made(here).image, here.host, gpus="none")
    assert folder.is_relative_to(here.store.root / "reports")
    assert suite["suite"] == "full"


# What is built is what is committed.

DRIFT: dict[str, Callable[[Path], object]] = {
    "a changed Dockerfile": lambda folder: (folder / "Dockerfile").write_text("FROM scratch\n"),
    "a missing Dockerfile": lambda folder: (folder / "Dockerfile").unlink(),
    "changed requirements": lambda folder: (folder / "requirements.lock").write_text(""),
}


@pytest.mark.parametrize("what", DRIFT)
def test_drift_is_refused_before_anything_is_built(here: Place, what: str) -> None:
    DRIFT[what](here.workspace.folder(here.cell))
    with pytest.raises(DriftError, match=f"images/{here.cell.name}/"):
        made(here)
    assert here.docker.builds == 0


def test_a_lock_of_other_templates_is_refused_before_anything_is_built(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "template_version", lambda kind: "f" * 64)
    with pytest.raises(UsageError, match="does not follow matrix"):
        made(here)
    assert here.docker.builds == 0


def test_a_cell_without_a_lock_is_refused(here: Place) -> None:
    (here.workspace.folder(here.cell) / lockfile.LOCK_NAME).unlink()
    with pytest.raises(UsageError, match="is not locked") as caught:
        made(here)
    assert f"tfenv lock {here.cell.name}" in caught.value.remedy


# Every stage fails in turn.


def _raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def _mode(mode: str) -> Callable[[Place, pytest.MonkeyPatch], None]:
    return lambda here, patch: patch.setenv("FAKE_BUILD", mode)


def _at(what: str, error: BaseException) -> Callable[[Place, pytest.MonkeyPatch], None]:
    return lambda here, patch: patch.setattr(what, _raising(error))


def _no_client(here: Place, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("TFENV_DOCKER", "/nowhere/docker")


def _fetch_fails(error: BaseException) -> Callable[[Place, pytest.MonkeyPatch], None]:
    def arrange(here: Place, patch: pytest.MonkeyPatch) -> None:
        path = here.store.path(here.lock.wheels[0].sha256)
        path.rename(path.with_suffix(".aside"))
        patch.setattr("tfenv.fetch.fetch", _raising(error))

    return arrange


def _load_fails(here: Place, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("FAKE_BUILDER", "own")
    patch.setattr(here.images, "failing", NotReadyError("the engine's disk is full", remedy="free some"))


def _tag_fails(here: Place, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(here.images, "tag", _raising(ContainerError("the engine refused", remedy="look at it")))


def _disk(here: Place, patch: pytest.MonkeyPatch) -> None:
    from tfenv.disk import check_all

    patch.setattr("tfenv.build.check_all", lambda needs: check_all(needs, lambda _: 1000))


Arrange = Callable[[Place, pytest.MonkeyPatch], None]
HASH = IntegrityError("pip-24.0: its sha256 is x, expected y", remedy="fetch it again")
FAILURES: dict[str, tuple[Arrange, int, str]] = {
    "no client": (_no_client, 4, "buildx"),
    "no engine": (_mode("no-engine"), 4, "no Docker Engine answers"),
    "no permission": (_mode("no-permission"), 4, "may not talk to the Docker Engine"),
    "no disk": (_disk, 4, "not enough disk space"),
    "no network": (
        _fetch_fails(NotReadyError("no server answers", remedy="connect")),
        4,
        "no server answers",
    ),
    "a wrong hash": (_fetch_fails(HASH), 1, "expected y"),
    "gone inputs": (_fetch_fails(MissingInputs("x", wheels=["pip.whl"])), 1, "no longer to be had"),
    "a step fails": (_mode("step-fails"), 1, "the build failed"),
    "the disk fills up": (_mode("disk-full"), 4, "disk is full"),
    "the engine goes away": (_mode("engine-lost"), 4, "engine went away"),
    "another digest": (_mode("other-digest"), 1, "the builder said"),
    "Ctrl-C": (_at("tfenv.buildx.run_build", KeyboardInterrupt()), 130, "interrupted"),
    "Ctrl-C while staging": (
        _at("tfenv.rootfs.write_essential_tar", KeyboardInterrupt()),
        130,
        "interrupted",
    ),
    "Ctrl-C while storing": (_at("tfenv.store.Store.adopt", KeyboardInterrupt()), 130, "interrupted"),
    "the load fails": (_load_fails, 4, "disk is full"),
    "the tags are refused": (_tag_fails, 1, "refused"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_one_message_a_code_and_no_tag_moved(
    here: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    arrange, code, words = FAILURES[what]
    here.images.tags = {small.TAGS[0]: OLD, "tfenv:2.15-cu12": OLD}
    tags, committed = dict(here.images.tags), images(here)
    with monkeypatch.context() as patch:
        arrange(here, patch)
        assert cli.run(["build", "2.15-cu12"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert "Traceback" not in err
    if code != 130:
        assert err.count("error: ") >= 1 and "remedy: " in err
    assert here.images.tags == tags
    assert bool(here.images.passing) == (what == "the tags are refused"), "the image of a build that is done"
    assert images(here) == committed
    left = here.leftovers()
    assert all(name.startswith("stage/") for name in left)
    assert not left or what == "a step fails"

    for aside in here.store.blobs_dir.glob("*.aside"):
        aside.rename(aside.with_suffix(""))
    assert cli.run(["build", "2.15-cu12"]) == 0, "the next run goes on"
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)
    assert here.images.passing == {}
    assert here.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_build_that_is_ended_from_outside(
    here: Place, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("FAKE_BUILD", "hangs")
    tfenv = Path(sys.executable).with_name("tfenv")
    process = subprocess.Popen(
        [tfenv, "build", "2.15-cu12"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    client = here.docker.hanging()
    try:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        if number != signal.SIGKILL:
            assert process.returncode == 128 + number
            assert "interrupted" in err
            assert here.leftovers() == []
            with pytest.raises(ProcessLookupError):
                os.kill(client, 0)
        assert out == ""
    finally:
        with suppress(ProcessLookupError):
            os.kill(client, signal.SIGKILL)
    assert not here.store.builds_dir.exists()
    monkeypatch.delenv("FAKE_BUILD")
    assert cli.run(["build", "2.15-cu12"]) == 0, "the next run goes on"
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)
    assert here.leftovers() == []


def test_a_cell_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = small.place(tmp_path, monkeypatch, small.TWO_BASES)
    first, second = here.workspace.matrix.cells
    (here.workspace.folder(first) / "Dockerfile").write_text("FROM scratch\n")
    assert cli.run(["build", "--all"]) == 1
    out, err = capsys.readouterr()
    assert "images/" in err and first.name in err
    assert out.startswith(f"{second.name}: built")
    assert f"tfenv:{second.name}" in here.images.tags
    assert f"tfenv:{first.name}" not in here.images.tags


# Twice.


def test_two_builds_that_are_equal(here: Place) -> None:
    first, second = pipeline.make_twice(here.inputs, here.host)
    assert here.docker.builds == 2
    assert here.images.passing == {}, "two archives are compared, no image"
    assert first.digest == second.digest
    assert "--no-cache" in (here.docker.folder / "asked").read_text()


def test_two_builds_that_differ_say_in_what(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = buildx.run_build

    def then_another(*given: Any, **more: Any) -> buildx.BuildResult:
        result = real(*given, **more)
        here.docker.will_build(
            small.tarred([small.folder("etc"), small.file("etc/a")]),
            small.tarred([small.file("b", b"another")]),
        )
        return result

    monkeypatch.setattr(buildx, "run_build", then_another)
    with pytest.raises(IntegrityError, match="is not reproducible here") as caught:
        pipeline.make_twice(here.inputs, here.host)
    assert "layer 2: b: content" in caught.value.message
    assert here.images.tags == {}


# A cell that is not locked yet.


def resolvers(here: Place) -> Resolvers:
    lock = here.lock
    return Resolvers(
        debian=lambda suite, packages: (lock.debian, lock.debian_locked_at),
        wheels=lambda cell, platform: lock.wheels,
        uv=lambda: lock.uv,
        digest=lambda image: pytest.fail(f"asked for {image}"),
    )


def test_prepare_touches_nothing_that_is_committed(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: pytest.fail("resolved"))
    before = images(here)
    assert pipeline.prepare(here.workspace, here.cell, here.host) == here.inputs
    assert images(here) == before


def test_prepare_locks_and_renders_a_new_cell(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = resolvers(here)
    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: real)
    folder = here.workspace.folder(here.cell)
    for path in folder.iterdir():
        path.unlink()
    inputs = pipeline.prepare(here.workspace, here.cell, here.host)
    assert inputs.lock == lockfile.read_lock(folder / lockfile.LOCK_NAME)
    assert inputs.locked
    assert render.drift(folder, inputs.files) == ()
    assert inputs.files == render.render(here.cell, inputs.lock)


def test_prepare_renders_a_dockerfile_that_is_missing(here: Place) -> None:
    folder = here.workspace.folder(here.cell)
    before = images(here)
    (folder / "Dockerfile").unlink()
    pipeline.prepare(here.workspace, here.cell, here.host)
    assert images(here) == before


def test_prepare_refuses_what_does_not_belong_together(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = here.workspace.folder(here.cell)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    with pytest.raises(DriftError):
        pipeline.prepare(here.workspace, here.cell, here.host)
    (folder / "Dockerfile").unlink()
    monkeypatch.setattr(render, "template_version", lambda kind: "f" * 64)
    with pytest.raises(UsageError, match="another version of the templates"):
        pipeline.prepare(here.workspace, here.cell, here.host)
    assert not (folder / "Dockerfile").exists()


def test_todays_lock_has_other_debian_packages_and_nothing_else(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = tuple(replace(package, version="2.0") for package in reversed(here.lock.debian))
    asked: list[tuple[str, tuple[str, ...]]] = []

    def debian(suite: str, packages: tuple[str, ...]) -> Any:
        asked.append((suite, packages))
        return newer, "2025-12-01T00:00:00Z"

    monkeypatch.setattr("tfenv.lock.host_resolvers", lambda env: replace(resolvers(here), debian=debian))
    inputs = pipeline.todays(here.inputs, here.host)
    lock = inputs.lock
    assert inputs == unlocked(here.cell, lock) and not inputs.locked
    assert asked == [("bookworm", here.cell.base.packages_for("3.11"))]
    assert lock.debian == tuple(sorted(newer, key=lambda package: package.name))
    same = replace(lock, debian=here.lock.debian, debian_locked_at=here.lock.debian_locked_at)
    assert same == here.lock


# What verification is told.


def test_the_suite_is_told_what_the_tag_declares() -> None:
    cell, lock = real()
    text = str(pipeline.declared(cell, lock, "sha256:image"))
    for word in (cell.row.tensorflow, cell.cuda_set.cuda, cell.python, "sha256:image"):
        assert word in text
