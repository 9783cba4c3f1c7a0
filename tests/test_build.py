"""Building: what names a build, when it is done again, what is left behind, and when tags move."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
from small import Place
from tfenv import build, buildx, lockfile, oci, render
from tfenv.buildx import BuildError
from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.fetch import MissingInputs
from tfenv.model import Lock, Rule
from tfenv.store import hash_file


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return small.place(tmp_path, monkeypatch)


def made(here: Place, lock: Lock | None = None, **more: Any) -> build.Built:
    return build.build(here.cell, lock or here.lock, here.host, **more)


# What names a build.

CHANGES: dict[str, Callable[[Lock], Lock]] = {
    "another wheel": lambda lock: replace(
        lock, wheels=(replace(lock.wheels[0], sha256="f" * 64), *lock.wheels[1:])
    ),
    "a wheel less": lambda lock: replace(lock, wheels=lock.wheels[1:]),
    "another Debian package": lambda lock: replace(lock, debian=(replace(lock.debian[0], version="2"),)),
    "another epoch": lambda lock: replace(lock, epoch=lock.epoch + 1),
    "another base epoch": lambda lock: replace(lock, base_epoch=lock.base_epoch + 1),
    "other files trimmed": lambda lock: replace(lock, trim=(Rule(what="x/**", why="not needed here"),)),
    "other files kept": lambda lock: replace(lock, keep=()),
    "another uv": lambda lock: replace(lock, uv="1.0"),
    "other templates": lambda lock: replace(lock, template="f" * 64),
}


def inputs(here: Place, lock: Lock, **more: Any) -> str:
    return build.input_hash(lock, render.render(here.cell, lock, **more))


@pytest.mark.parametrize("change", CHANGES)
def test_every_input_names_the_build(here: Place, change: str) -> None:
    assert inputs(here, CHANGES[change](here.lock)) != inputs(here, here.lock)


def test_the_dockerfile_and_the_mark_of_another_lock_name_the_build(here: Place) -> None:
    files = render.render(here.cell, here.lock)
    changed = {**files, "Dockerfile": files["Dockerfile"] + "# more\n"}
    assert build.input_hash(here.lock, changed) != build.input_hash(here.lock, files)
    assert inputs(here, here.lock, locked=False) != inputs(here, here.lock)


@pytest.mark.parametrize("what", ["tfenv.render.template_version", "tfenv.rootfs.recipe_version"])
def test_what_writes_the_files_names_the_build(
    here: Place, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    files, before = render.render(here.cell, here.lock), inputs(here, here.lock)
    monkeypatch.setattr(what, lambda: "another")
    assert build.input_hash(here.lock, files) != before


def test_nothing_else_names_the_build(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = inputs(here, here.lock)
    files = render.render(here.cell, here.lock)
    monkeypatch.setenv("TFENV_CACHE", "/elsewhere")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy:1")
    again = lockfile.load_lock(lockfile.dump_lock(here.lock))
    assert build.input_hash(again, dict(reversed(list(files.items())))) == before


# What a build leaves.


def test_a_build_is_in_the_store_under_its_own_hash(here: Place) -> None:
    built = made(here)
    described = oci.describe(built.archive)
    assert built.archive == here.store.path(hash_file(built.archive))
    assert built.digest.manifest == described.manifest_digest == here.docker.manifest
    assert (built.digest.config, built.digest.diff_ids) == (described.config_digest, described.diff_ids)
    assert built.digest.lock == lockfile.lock_hash(here.lock)
    assert (built.digest.engine, built.digest.buildx) == ("26.1.5", "0.19.3")
    assert (built.reused, built.locked) == (False, True)
    assert set(built.seconds) == {"fetch", "build", "store"}
    assert here.leftovers() == []


def test_the_log_is_kept(here: Place) -> None:
    log = made(here).log
    assert log is not None
    assert log.read_text().startswith("$ ")
    assert here.cell.name in log.name


def test_a_build_reads_only_what_was_staged(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[list[str]] = []
    real = buildx.run_build

    def spy(argv: list[str], *rest: Any, **more: Any) -> buildx.BuildResult:
        lines.append(argv)
        return real(argv, *rest, **more)

    monkeypatch.setattr(buildx, "run_build", spy)
    made(here)
    (argv,) = lines
    stage = here.store.root / "stage"
    contexts = [argv[n + 1].partition("=")[2] for n, word in enumerate(argv) if word == "--build-context"]
    assert all(Path(path).is_relative_to(stage) for path in (argv[-1], *contexts))
    assert "--no-cache" not in argv
    assert f"SOURCE_DATE_EPOCH={here.lock.epoch}" in argv


def test_what_was_built_is_not_built_again(here: Place) -> None:
    first, second = made(here), made(here)
    assert here.docker.builds == 1
    assert (second.reused, second.log, dict(second.seconds)) == (True, None, {})
    assert (second.archive, second.digest) == (first.archive, first.digest)


def test_a_build_with_nothing_to_do_needs_no_engine_and_no_inputs(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(here)
    for wheel in here.lock.wheels:
        here.store.path(wheel.sha256).unlink()
    monkeypatch.setenv("FAKE_BUILD", "no-engine")
    assert made(here).reused


def test_no_cache_builds_again_without_the_builders_cache(here: Place) -> None:
    made(here)
    assert not made(here, no_cache=True).reused
    assert here.docker.builds == 2
    assert "--no-cache" in (here.docker.folder / "asked").read_text()


def test_another_lock_is_another_build(here: Place) -> None:
    made(here)
    assert not made(here, replace(here.lock, epoch=here.lock.epoch + 1)).reused
    assert made(here).reused


def test_an_image_of_another_lock_than_the_committed_one_is_another_build(here: Place) -> None:
    made(here)
    built = made(here, locked=False)
    assert (built.reused, built.locked) == (False, False)
    assert made(here, locked=False).reused


def test_a_record_whose_archive_is_gone_builds_again(here: Place) -> None:
    made(here).archive.unlink()
    assert not made(here).reused
    assert made(here).reused


@pytest.mark.parametrize(
    "record", ["", "{", "[]", "{}", '{"archive": 3}', '{"archive": "../../etc/passwd"}', '{"archive": "%s"}']
)
def test_a_damaged_record_builds_again(here: Place, record: str) -> None:
    built = made(here)
    path = here.store.builds_dir / f"{built.inputs}.json"
    path.write_text(record.replace("%s", built.archive.name))
    assert not made(here).reused
    assert json.loads(path.read_text())["archive"] == built.archive.name


def test_missing_inputs_are_fetched_before_anything_is_built(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = next(wheel for wheel in here.lock.wheels if wheel.name == "pip")
    here.store.path(wheel.sha256).unlink()
    with pytest.raises(NotReadyError, match="no server answers"):
        made(here)
    assert here.docker.builds == 0

    def fetched(lock: Lock, *_: object, **__: object) -> None:
        small.fill(here.store, lock)

    monkeypatch.setattr("tfenv.fetch.fetch", fetched)
    assert not made(here).reused


# What fails leaves nothing behind.


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        ("no-engine", NotReadyError),
        ("no-permission", NotReadyError),
        ("disk-full", NotReadyError),
        ("engine-lost", NotReadyError),
        ("other-digest", IntegrityError),
        ("step-fails", BuildError),
    ],
)
def test_a_failed_build_leaves_no_record_and_no_archive(
    here: Place, monkeypatch: pytest.MonkeyPatch, mode: str, error: type[Exception]
) -> None:
    blobs = set(here.store.blobs_dir.iterdir())
    monkeypatch.setenv("FAKE_BUILD", mode)
    with pytest.raises(error):
        made(here)
    assert set(here.store.blobs_dir.iterdir()) == blobs
    assert not here.store.builds_dir.exists()
    stays = (here.store.root / "stage").glob("*")
    assert bool(list(stays)) == (error is BuildError), "only the stage of a step that failed stays"
    monkeypatch.delenv("FAKE_BUILD")
    assert not made(here).reused
    assert here.leftovers() == []


def test_a_failed_step_names_the_log_and_the_line_to_repeat_it(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BUILD", "step-fails")
    with pytest.raises(BuildError) as caught:
        made(here)
    assert caught.value.log is not None and caught.value.log.is_file()
    assert str(caught.value.log) in caught.value.message
    assert caught.value.command in caught.value.remedy
    context = Path(caught.value.command.split()[-1])
    assert (context / "Dockerfile").is_file(), "the line that is named can be typed"


def test_an_archive_that_is_cut_off_is_no_build(here: Place) -> None:
    image = here.docker.folder / "image.tar"
    image.write_bytes(image.read_bytes()[:2000])
    with pytest.raises(IntegrityError):
        made(here)
    assert not here.store.builds_dir.exists()
    assert here.leftovers() == []


def test_the_disk_is_checked_before_anything_is_fetched_or_built(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[Path, int]] = []

    def full(needs: dict[Path, int]) -> None:
        asked.append(needs)
        raise NotReadyError("not enough disk space", remedy="r")

    monkeypatch.setattr(build, "check_all", full)
    monkeypatch.setattr("tfenv.fetch.fetch", lambda *_, **__: pytest.fail("fetched"))
    with pytest.raises(NotReadyError, match="not enough disk space"):
        made(here)
    assert here.docker.builds == 0
    assert here.store.root in asked[0]


# By hand.


def test_a_stage_for_the_hand_names_the_line_that_builds_it(here: Place, tmp_path: Path) -> None:
    argv = build.stage_for_hand(here.cell, here.lock, here.host, tmp_path / "new" / "stage")
    assert argv[0] == str(here.docker.path)
    assert argv[-1] == str(tmp_path / "new" / "stage" / "context")
    assert (tmp_path / "new" / "stage" / "context" / "Dockerfile").is_file()
    assert here.docker.builds == 0


def test_a_stage_never_overwrites_a_folder(here: Place, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        build.stage_for_hand(here.cell, here.lock, here.host, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


# Tags.


@pytest.fixture
def own_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A builder beside the engine: what it builds has to be loaded."""
    monkeypatch.setenv("FAKE_BUILDER", "own")


def test_the_engines_own_builder_leaves_the_image_there(here: Place) -> None:
    built = made(here)
    assert build.load_and_tag(built, ("tfenv:a", "tfenv:b"), here.env)
    assert here.images.tags == dict.fromkeys(("tfenv:a", "tfenv:b"), built.digest.manifest)
    assert here.images.loads == 0


def test_a_builder_of_its_own_has_the_archive_loaded(here: Place, own_builder: None) -> None:
    built = made(here)
    assert build.load_and_tag(built, ("tfenv:a", "tfenv:b"), here.env)
    assert here.images.tags == dict.fromkeys(("tfenv:a", "tfenv:b"), built.digest.manifest)
    assert here.images.loads == 1


def test_an_image_that_the_engine_has_lost_is_loaded_from_the_store(here: Place) -> None:
    built = made(here)
    build.load_and_tag(built, ("tfenv:a",), here.env)
    here.images.tags.clear()
    here.images.loaded.clear()
    assert build.load_and_tag(made(here), ("tfenv:a",), here.env)
    assert here.images.tags == {"tfenv:a": built.digest.manifest}
    assert here.images.loads == 1


def test_an_image_that_is_loaded_and_tagged_is_left_alone(here: Place, own_builder: None) -> None:
    built = made(here)
    build.load_and_tag(built, ("tfenv:a",), here.env)
    assert not build.load_and_tag(built, ("tfenv:a",), here.env)
    assert here.images.loads == 1


def test_a_tag_that_is_missing_or_elsewhere_moves_without_a_load(here: Place, own_builder: None) -> None:
    built = made(here)
    build.load_and_tag(built, ("tfenv:a",), here.env)
    here.images.tags = {"tfenv:b": "sha256:other"}
    assert build.load_and_tag(built, ("tfenv:a", "tfenv:b"), here.env)
    assert here.images.loads == 1
    assert here.images.tags == dict.fromkeys(("tfenv:a", "tfenv:b"), built.digest.manifest)


def test_the_passing_name_of_a_build_goes_also_when_no_tag_moves(here: Place) -> None:
    for _ in range(2):
        build.load_and_tag(made(here, no_cache=True), ("tfenv:a",), here.env)
    assert here.images.inspect("tfenv:a")
    assert list(here.images.tags) == ["tfenv:a"]


def test_no_tag_moves_when_the_load_fails(here: Place, own_builder: None) -> None:
    here.images.tags = {"tfenv:a": "sha256:old"}
    here.images.failing = NotReadyError("the engine's disk is full", remedy="r")
    with pytest.raises(NotReadyError):
        build.load_and_tag(made(here), ("tfenv:a",), here.env)
    assert here.images.tags == {"tfenv:a": "sha256:old"}


def test_what_is_gone_for_ever_is_told_with_its_names(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = here.lock.debian[0]
    here.store.path(gone.sha256).unlink()

    def lost(lock: Lock, *_: object, **__: object) -> None:
        raise MissingInputs(lock.cell, debian=[gone.filename])

    monkeypatch.setattr("tfenv.fetch.fetch", lost)
    with pytest.raises(MissingInputs, match=gone.filename) as caught:
        made(here)
    assert "--upgrade debian" in caught.value.remedy
