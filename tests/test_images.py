"""The engine's side of a build: what is loaded, when tags move, what a tag holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from small import Place
from tfenv import build, images
from tfenv.errors import IntegrityError, NotReadyError, UsageError

AB = ("tfenv:a", "tfenv:b")


@pytest.fixture
def own_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A builder beside the engine: what it builds has to be loaded."""
    monkeypatch.setenv("FAKE_BUILDER", "own")


def made(here: Place, **more: Any) -> build.Built:
    return build.build(here.inputs, here.host, **more)


def put(here: Place, built: build.Built, tags: tuple[str, ...] = AB) -> tuple[bool, bool]:
    """Load and tag: (was it loaded, was a tag moved)."""
    loaded = images.settle(built, here.env)
    moved = images.tag(built.digest.manifest, tags, here.env, passing=built.inputs.building)
    return loaded, moved


# Into the engine.


def test_the_engines_own_builder_leaves_the_image_there(here: Place) -> None:
    built = made(here)
    assert here.images.passing == {here.inputs.building: built.digest.manifest}
    assert put(here, built) == (False, True)
    assert here.images.tags == dict.fromkeys(AB, built.digest.manifest)
    assert here.images.loads == 0


def test_a_builder_of_its_own_has_the_archive_loaded(here: Place, own_builder: None) -> None:
    built = made(here)
    assert here.images.passing == {}
    assert put(here, built) == (True, True)
    assert here.images.tags == dict.fromkeys(AB, built.digest.manifest)
    assert here.images.loads == 1


def test_an_image_that_the_engine_has_lost_is_loaded_from_the_store(here: Place) -> None:
    put(here, made(here))
    here.images.tags.clear()
    here.images.loaded.clear()
    built = made(here)
    assert put(here, built) == (True, True)
    assert built.reused
    assert here.images.tags == dict.fromkeys(AB, built.digest.manifest)


def test_settling_moves_no_tag(here: Place, own_builder: None) -> None:
    here.images.tags = {"tfenv:a": "sha256:old"}
    assert images.settle(made(here), here.env)
    assert here.images.tags == {"tfenv:a": "sha256:old"}


# Tags.


def test_an_image_that_is_loaded_and_tagged_is_left_alone(here: Place, own_builder: None) -> None:
    built = made(here)
    put(here, built)
    assert put(here, built) == (False, False)
    assert here.images.loads == 1


def test_a_tag_that_is_missing_or_elsewhere_moves_without_a_load(here: Place, own_builder: None) -> None:
    built = made(here)
    put(here, built)
    here.images.tags = {"tfenv:b": "sha256:other"}
    assert put(here, built) == (False, True)
    assert here.images.loads == 1
    assert here.images.tags == dict.fromkeys(AB, built.digest.manifest)


def test_the_passing_name_goes_once_the_tags_hold_the_image_also_when_none_moves(here: Place) -> None:
    for moved in (True, False):
        assert put(here, made(here, no_cache=True)) == (False, moved)
        assert here.images.passing == {}
        assert here.images.inspect("tfenv:a") == here.docker.manifest, "removing the name kept the image"


def test_the_passing_name_of_another_build_stays(here: Place) -> None:
    built = made(here)
    here.docker.keep("tfenv-building:0123456789abcdef", built.digest.manifest)
    put(here, built)
    assert list(here.images.passing) == ["tfenv-building:0123456789abcdef"]


def test_no_tag_moves_when_the_load_fails(here: Place, own_builder: None) -> None:
    here.images.tags = {"tfenv:a": "sha256:old"}
    here.images.failing = NotReadyError("the engine's disk is full", remedy="r")
    with pytest.raises(NotReadyError):
        put(here, made(here))
    assert here.images.tags == {"tfenv:a": "sha256:old"}


# What a tag holds.


def test_the_first_name_that_is_there_is_found_with_what_its_labels_say(here: Place) -> None:
    built = made(here)
    put(here, built)
    found = images.find(("tfenv:none", "tfenv:b", "tfenv:a"), here.env)
    assert found == images.Image("tfenv:b", built.digest.manifest, here.cell.name, here.inputs.lock_hash)


def test_an_image_of_somebody_else_has_no_cell_and_no_lock(here: Place) -> None:
    here.docker.keep("tfenv:foreign", "sha256:1")
    assert images.find(("tfenv:foreign",), here.env) == images.Image("tfenv:foreign", "sha256:1", "", "")


def test_where_there_is_none_it_says_what_builds_it(here: Place) -> None:
    with pytest.raises(UsageError, match="no image tfenv:a") as caught:
        images.find(AB, here.env, cell="vision")
    assert caught.value.remedy == "type: tfenv build vision", "a cell's name, which an image's is not"
    with pytest.raises(UsageError, match="no image tfenv:a") as caught:
        images.find(AB, here.env)
    assert "docker image ls" in caught.value.remedy


# What killed builds leave.


def test_unfinished_images_are_forgotten_and_nothing_else(here: Place) -> None:
    built = made(here)
    put(here, built)
    here.docker.keep("tfenv-building:0123456789abcdef", "sha256:1")
    here.docker.keep("tfenv-building:fedcba9876543210", built.digest.manifest)
    here.docker.keep("other:x", "sha256:2")
    assert images.forget_unfinished(str(here.docker.path)) == 2
    assert list(here.images.passing) == ["other:x"]
    assert here.images.tags == dict.fromkeys(AB, built.digest.manifest)
    assert images.forget_unfinished(str(here.docker.path)) == 0


def test_nothing_is_removed_where_nothing_is_left(here: Place) -> None:
    assert images.forget_unfinished(str(here.docker.path)) == 0
    assert not any(line.startswith("image rm") for line in here.docker.asked)


def test_without_an_engine_nothing_is_forgotten() -> None:
    assert images.forget_unfinished("/nowhere/docker") == 0


def test_an_archive_changed_on_disk_is_not_loaded(here: Place, own_builder: None) -> None:
    built = made(here)
    data = built.archive.read_bytes()
    middle = len(data) // 2
    built.archive.write_bytes(data[:middle] + bytes(64) + data[middle + 64 :])
    with pytest.raises(IntegrityError, match="has been removed"):
        images.settle(built, here.env)
    assert not built.archive.exists()
    assert not made(here).reused, "it is built anew"


def test_an_archive_of_another_digest_is_not_loaded(here: Place, own_builder: None) -> None:
    built = made(here)
    other = replace(built, digest=replace(built.digest, manifest="sha256:" + "1" * 64))
    with pytest.raises(IntegrityError, match="does not hold sha256:1111"):
        images.settle(other, here.env)
