"""Building: when it is done again, who keeps what, and what is left behind."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
from small import Place
from tfenv import build, buildx, lockfile, oci
from tfenv.buildx import BuildError
from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.fetch import MissingInputs
from tfenv.inputs import Inputs, unlocked
from tfenv.model import Lock
from tfenv.store import Store, hash_file


def made(here: Place, inputs: Inputs | None = None, **more: Any) -> build.Built:
    return build.build(inputs or here.inputs, here.host, **more)


def other(here: Place) -> Inputs:
    """What another lock than the committed one gives."""
    return unlocked(here.cell, replace(here.lock, epoch=here.lock.epoch + 1))


def lines_of(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every command line of a build from now on."""
    lines: list[list[str]] = []
    real = buildx.run_build

    def spy(argv: list[str], *rest: Any, **more: Any) -> buildx.BuildResult:
        lines.append(argv)
        return real(argv, *rest, **more)

    monkeypatch.setattr(buildx, "run_build", spy)
    return lines


# What a build leaves.


def test_a_build_is_in_the_store_under_its_own_hash(here: Place) -> None:
    built = made(here)
    described = oci.describe(built.archive)
    assert built.archive == here.store.path(hash_file(built.archive))
    assert built.digest.manifest == described.manifest_digest == here.docker.manifest
    assert (built.digest.config, built.digest.diff_ids) == (described.config_digest, described.diff_ids)
    assert (built.digest.inputs, built.digest.lock) == (here.inputs.hash, lockfile.lock_hash(here.lock))
    assert built.digest.builder == "Docker Engine 26.1.5"
    assert built.inputs == here.inputs
    assert not built.reused
    assert set(built.seconds) == {"fetch", "build", "store"}
    assert here.leftovers() == []


def test_a_builder_beside_the_engine_is_named(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_BUILDER", "own")
    assert made(here).digest.builder == "BuildKit 0.20.0"


def test_the_log_is_kept(here: Place) -> None:
    log = made(here).log
    assert log is not None
    assert log.read_text().startswith("$ ")
    assert here.cell.name in log.name


def test_a_build_reads_only_what_was_staged(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of(monkeypatch)
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


def test_other_inputs_are_another_build(here: Place) -> None:
    made(here)
    assert not made(here, other(here)).reused
    assert made(here).reused


def test_the_same_lock_marked_as_not_committed_is_another_build(here: Place) -> None:
    made(here)
    marked = unlocked(here.cell, here.lock)
    assert not made(here, marked).reused
    assert made(here, marked).reused


def test_a_build_is_found_by_its_inputs_alone(here: Place) -> None:
    assert build.find(here.inputs, here.store) is None
    built = made(here)
    found = build.find(here.inputs, here.store)
    assert found is not None
    assert (found.archive, found.digest, found.reused) == (built.archive, built.digest, True)
    assert build.find(other(here), here.store) is None


# Who keeps the image.


def test_the_engine_keeps_the_image_under_a_passing_name(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of(monkeypatch)
    built = made(here)
    assert here.images.passing == {built.inputs.building: built.digest.manifest}
    assert here.images.tags == {}
    assert any(f"name={built.inputs.building}" in word for word in lines[0])


def test_an_archive_alone_is_kept_by_no_engine(here: Place) -> None:
    built = made(here, archive_only=True)
    assert built.archive.is_file()
    assert here.images.passing == {}


def test_a_builder_beside_the_engine_leaves_it_nothing(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_BUILDER", "own")
    made(here)
    assert here.images.passing == {}


# Two at once.


def test_what_another_tfenv_built_meanwhile_is_taken(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    built = made(here)
    record = here.store.builds_dir / f"{built.inputs.hash}.json"
    aside = record.rename(record.with_suffix(".aside"))
    real = Store.lock

    @contextmanager
    def lock(store: Store) -> Iterator[None]:
        with real(store):
            if aside.exists():
                aside.rename(record)  # by the tfenv that was waited for
            yield

    monkeypatch.setattr(Store, "lock", lock)
    again = made(here)
    assert (again.reused, again.digest) == (True, built.digest)
    assert here.docker.builds == 1
    record.rename(aside)
    assert not made(here, no_cache=True).reused, "asked for a build, and gets one"


def test_inputs_are_fetched_and_built_while_the_store_is_held(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[str] = []

    def note(what: str) -> None:
        with (here.store.root / "lock").open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(what)

    def fetched(lock: Lock, *_: object, **__: object) -> None:
        note("fetch")
        small.fill(here.store, lock)

    real = buildx.run_build

    def built(*given: Any, **more: Any) -> buildx.BuildResult:
        note("build")
        return real(*given, **more)

    here.store.path(here.lock.wheels[0].sha256).unlink()
    monkeypatch.setattr("tfenv.fetch.fetch", fetched)
    monkeypatch.setattr(buildx, "run_build", built)
    made(here)
    assert held == ["fetch", "build"]
    with (here.store.root / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


# What was built may be lost.


def test_a_record_whose_archive_is_gone_builds_again(here: Place) -> None:
    made(here).archive.unlink()
    assert not made(here).reused
    assert made(here).reused


def test_a_record_whose_archive_is_cut_off_builds_again(here: Place) -> None:
    built = made(here)
    whole = built.archive.read_bytes()
    record = here.store.read_record(built.inputs.hash)
    assert record is not None and record["archive_bytes"] == len(whole)
    built.archive.write_bytes(whole[:-1])
    assert build.find(built.inputs, here.store) is None
    again = made(here)
    assert (again.reused, again.archive.read_bytes()) == (False, whole)
    assert made(here).reused


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"archive": 3, "archive_bytes": 3}',
        '{"archive": "../../etc/passwd", "archive_bytes": 3}',
        '{"archive": "%s"}',
        '{"archive": "%s", "archive_bytes": %d}',
    ],
)
def test_a_damaged_record_builds_again(here: Place, record: str) -> None:
    built = made(here)
    path = here.store.builds_dir / f"{built.inputs.hash}.json"
    size = str(built.archive.stat().st_size)
    path.write_text(record.replace("%s", built.archive.name).replace("%d", size))
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


def test_an_archive_with_a_damaged_layer_is_no_build(here: Place) -> None:
    image = here.docker.folder / "image.tar"
    layer = oci.describe(image).layers[0].digest.removeprefix("sha256:")
    whole = image.read_bytes()
    at = whole.index(f"blobs/sha256/{layer}".encode()) + 512 + 8  # in the layer, behind its tar header
    image.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(IntegrityError, match="own hash"):
        made(here)
    assert not here.store.builds_dir.exists()
    assert here.images.passing == {} and here.leftovers() == []


def test_layers_that_another_build_compressed_in_its_way_are_no_build(here: Place) -> None:
    here.docker.will_build(small.tarred([small.file("a")]), kind="gzip")
    with pytest.raises(IntegrityError, match="not compressed by zstd"):
        made(here)
    assert not here.store.builds_dir.exists()
    assert here.images.passing == {} and here.leftovers() == []


INTERRUPTIONS: list[tuple[str, BaseException]] = [
    ("tfenv.oci.describe", KeyboardInterrupt()),
    ("tfenv.store.Store.adopt", NotReadyError("cannot write to the store", remedy="r")),
    ("tfenv.store.Store.adopt", KeyboardInterrupt()),
    ("tfenv.store.Store.write_record", KeyboardInterrupt()),
]


@pytest.mark.parametrize(("what", "error"), INTERRUPTIONS)
@pytest.mark.parametrize("builder", ["", "own"])
def test_what_breaks_off_after_the_export_leaves_no_name_in_the_engine(
    here: Place, monkeypatch: pytest.MonkeyPatch, what: str, error: BaseException, builder: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setenv("FAKE_BUILDER", builder)
    inputs = here.inputs
    with monkeypatch.context() as patch:
        patch.setattr(what, fail)
        with pytest.raises(type(error)):
            made(here)
    removed = [line for line in here.docker.asked if line.startswith("image rm")]
    assert removed == ([] if builder else [f"image rm {inputs.building}"])
    assert here.images.passing == {} and here.images.loaded == set()
    assert build.find(inputs, here.store) is None
    assert not made(here).reused
    assert here.leftovers() == []


def test_the_name_of_a_build_that_ends_well_stays(here: Place) -> None:
    made(here)
    assert not any(line.startswith("image rm") for line in here.docker.asked)


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


def test_what_is_gone_for_ever_is_told_with_its_names(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = here.lock.debian[0]
    here.store.path(gone.sha256).unlink()

    def lost(lock: Lock, *_: object, **__: object) -> None:
        raise MissingInputs(lock.cell, debian=[gone.filename])

    monkeypatch.setattr("tfenv.fetch.fetch", lost)
    with pytest.raises(MissingInputs, match=gone.filename) as caught:
        made(here)
    assert "--upgrade debian" in caught.value.remedy


# By hand.


def test_a_stage_for_the_hand_names_the_line_that_builds_it(here: Place, tmp_path: Path) -> None:
    argv = build.stage_for_hand(here.inputs, here.host, tmp_path / "new" / "stage")
    assert argv[0] == str(here.docker.path)
    assert argv[-1] == str(tmp_path / "new" / "stage" / "context")
    assert (tmp_path / "new" / "stage" / "context" / "Dockerfile").is_file()
    assert here.docker.builds == 0


def test_a_stage_never_overwrites_a_folder(here: Place, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        build.stage_for_hand(here.inputs, here.host, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
