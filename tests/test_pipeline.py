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
from tfenv import buildx, cli, digest, lockfile, pipeline, render
from tfenv.container import ContainerError
from tfenv.errors import DriftError, IntegrityError, NotReadyError, UsageError
from tfenv.fetch import MissingInputs
from tfenv.lock import Resolvers
from tfenv.matrix import load_matrix
from tfenv.model import Lock

OLD = "sha256:" + "0" * 64


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return small.place(tmp_path, monkeypatch)


def made(here: Place, **more: Any) -> pipeline.Made:
    return pipeline.build_cell(here.workspace, here.cell, here.host, **more)


def images(here: Place) -> dict[str, bytes]:
    """The committed files."""
    return {str(path): path.read_bytes() for path in here.workspace.images.rglob("*") if path.is_file()}


# A build that succeeds.


def test_a_cell_is_built_loaded_and_tagged(here: Place) -> None:
    result = made(here)
    assert list(result.tags) == small.TAGS
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)
    assert (result.built.locked, result.likeness) == (True, "not recorded")


def test_what_is_built_tells_how_it_relates_to_what_was_recorded(here: Place) -> None:
    first = made(here)
    written = pipeline.record(here.workspace, here.cell, first.built)
    assert written == here.workspace.folder(here.cell) / digest.FILE_NAME
    assert made(here).likeness == "identical"
    here.docker.will_build(small.tarred([small.file("other")]))
    assert made(here, no_cache=True).likeness == "different"


def test_another_lock_than_the_committed_one_is_marked_and_compared_with_nothing(here: Place) -> None:
    pipeline.record(here.workspace, here.cell, made(here).built)
    result = made(here, lock=replace(here.lock, epoch=here.lock.epoch + 1))
    assert (result.built.locked, result.likeness) == (False, "not recorded")


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
    monkeypatch.setattr(render, "template_version", lambda: "f" * 64)
    with pytest.raises(UsageError, match="another version of the templates"):
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
    "SIGTERM": (_at("tfenv.buildx.run_build", buildx.Terminated()), 130, "interrupted"),
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
    assert images(here) == committed
    left = here.leftovers()
    assert all(name.startswith("stage/") for name in left)
    assert not left or what == "a step fails"

    for aside in here.store.blobs_dir.glob("*.aside"):
        aside.rename(aside.with_suffix(""))
    assert cli.run(["build", "2.15-cu12"]) == 0, "the next run goes on"
    assert here.images.tags == dict.fromkeys(small.TAGS, here.docker.manifest)
    assert here.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
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
    first, second = pipeline.build_twice(here.workspace, here.cell, here.host)
    assert here.docker.builds == 2
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
        pipeline.build_twice(here.workspace, here.cell, here.host)
    assert "layer 2: b: content" in caught.value.message
    assert here.images.tags == {}


# A cell that is not locked yet.


def resolvers(here: Place) -> Resolvers:
    lock = here.lock
    return Resolvers(
        debian=lambda suite, packages: (lock.debian, lock.debian_locked_at),
        wheels=lambda cell, platform: lock.wheels,
        uv=lambda: lock.uv,
    )


def test_prepare_touches_nothing_that_is_committed(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "host_resolvers", lambda env: pytest.fail("resolved"))
    before = images(here)
    assert pipeline.prepare(here.workspace, here.cell, here.host) == here.lock
    assert images(here) == before


def test_prepare_locks_and_renders_a_new_cell(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = resolvers(here)
    monkeypatch.setattr(pipeline, "host_resolvers", lambda env: real)
    folder = here.workspace.folder(here.cell)
    for path in folder.iterdir():
        path.unlink()
    lock = pipeline.prepare(here.workspace, here.cell, here.host)
    assert lock == lockfile.read_lock(folder / lockfile.LOCK_NAME)
    assert render.drift(folder, render.render(here.cell, lock)) == ()


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
    monkeypatch.setattr(render, "template_version", lambda: "f" * 64)
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

    monkeypatch.setattr(pipeline, "host_resolvers", lambda env: replace(resolvers(here), debian=debian))
    lock: Lock = pipeline.todays_lock(here.cell, here.lock, here.host)
    assert asked == [("bookworm", here.cell.base.packages)]
    assert lock.debian == tuple(sorted(newer, key=lambda package: package.name))
    same = replace(lock, debian=here.lock.debian, debian_locked_at=here.lock.debian_locked_at)
    assert same == here.lock


# What verification is told.


def test_the_suite_is_told_what_the_tag_declares() -> None:
    root = Path(__file__).resolve().parent.parent
    cell = load_matrix(root / "matrix.yaml").cells[0]
    lock = lockfile.read_lock(root / "images" / cell.name / lockfile.LOCK_NAME)
    text = str(pipeline.declared(cell, lock, "sha256:image"))
    for word in (cell.row.tensorflow, cell.row.cuda_set.cuda, cell.python, "sha256:image"):
        assert word in text
