"""An alias goes back to its last verified image, is held there, and is let go again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import small
from small import Place
from test_history import NAME, A, B, C, build, event, report
from tfenv import cli, pipeline
from tfenv.errors import TfenvError, UsageError
from tfenv.history import state
from tfenv.history.choosing import choose
from tfenv.history.log import Log
from tfenv.history.model import Event

EVENTS = (event(1, A), event(2, B, A), event(3, C, B))


def verdicts(**of: str) -> Any:
    known: Mapping[str, str] = {{"a": A, "b": B, "c": C}[letter]: word for letter, word in of.items()}
    return lambda digest: known.get(digest, "")


# The decision.


@pytest.mark.parametrize(
    ("of", "digest", "verified", "failed"),
    [
        ({"a": "pass", "b": "pass"}, B, True, ()),
        ({"a": "pass", "b": "unverified"}, A, True, ()),
        ({"a": "pass", "b": "fail"}, A, True, (B,)),
        ({"a": "unverified", "b": "unverified"}, B, False, ()),
        ({"a": "unverified", "b": "fail"}, A, False, (B,)),
        ({}, B, False, ()),
        ({"c": "pass"}, B, False, ()),
    ],
)
def test_the_last_verified_one_is_taken_and_else_the_last_that_did_not_fail(
    of: dict[str, str], digest: str, verified: bool, failed: tuple[str, ...]
) -> None:
    found = choose(EVENTS, NAME, C, verdicts(**of))
    assert (found.event.after, found.verified, found.passed_over) == (digest, verified, failed)


def test_what_was_known_when_it_was_tagged_counts_where_no_report_is_left() -> None:
    events = (event(1, A, verdict="pass"), event(2, B, A, verdict="unverified"), event(3, C, B))
    assert choose(events, NAME, C, verdicts()).event.after == A
    assert choose(events, NAME, C, verdicts(a="fail")).event.after == B


def test_nothing_to_go_back_to() -> None:
    with pytest.raises(UsageError, match="nothing else"):
        choose((event(1, A),), NAME, A, verdicts())
    with pytest.raises(UsageError, match="nothing is written down of tfenv:other"):
        choose(EVENTS, "tfenv:other", A, verdicts())
    with pytest.raises(TfenvError, match="every earlier image"):
        choose(EVENTS, NAME, C, verdicts(a="fail", b="fail"))


def test_the_image_of_a_day() -> None:
    found = choose(EVENTS, NAME, C, verdicts(a="pass"), "2026-11-01")
    assert (found.event.after, found.verified) == (A, True)
    assert not choose(EVENTS, NAME, C, verdicts(), "2026-11-02").verified
    with pytest.raises(TfenvError, match="has failed its checks"):
        choose(EVENTS, NAME, C, verdicts(b="fail"), "2026-11-02")
    with pytest.raises(UsageError, match="not known"):
        choose(EVENTS, NAME, C, verdicts(), "2026-10-01")


# The whole of it.


def two(here: Place, *, first: str = "pass", second: str = "fail") -> tuple[str, str]:
    """Two images that the aliases meant one after the other, each with a verdict."""
    from tfenv.report import write

    made = []
    for number, verdict in enumerate((first, second)):
        one = build(here, small.tarred([small.file(f"file{number}")]))
        pipeline.tag(here.workspace, one, here.host)
        if verdict:
            gpu = "H200" if verdict == "pass" else ""
            write(report(one.image.id, verdict, 1, gpu), here.store.root / "reports")
        made.append(one.image.id)
    # The engine keeps an image that has lost its last name.
    here.images.loaded.update(made)
    assert here.images.tags[NAME] == made[1]
    return made[0], made[1]


def rollback(*arguments: str) -> int:
    return cli.run(["rollback", *arguments])


def events(here: Place) -> tuple[Event, ...]:
    return state.of(Log(here.store.root).read().events, NAME)


def test_an_alias_goes_back_and_only_that_one(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = two(here)
    assert rollback("2.15-cu12") == 0
    out, err = capsys.readouterr()
    assert out.split() == [NAME, old]
    assert "held there until: tfenv rollback tfenv:2.15-cu12 --release" in err
    assert here.images.tags == {**dict.fromkeys(small.TAGS, new), NAME: old}
    last = events(here)[-1]
    assert (last.kind, last.before, last.after, last.verdict) == ("rolled back", new, old, "pass")


def test_an_unverified_image_is_said_to_be_so(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    old, _ = two(here, first="unverified")
    assert rollback("2.15-cu12", "--json") == 3
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["digest"], told["verdict"], told["held"]) == (old, "unverified", True)
    assert "NOT verified" in err
    assert here.images.tags[NAME] == old


def test_what_it_would_do_moves_nothing(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    _, new = two(here)
    before = events(here)
    assert rollback("2.15-cu12", "--dry-run") == 0
    assert "nothing was moved" in capsys.readouterr().err
    assert here.images.tags[NAME] == new and events(here) == before


def test_a_held_alias_stays_and_the_next_build_says_so(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    old, _ = two(here)
    rollback("2.15-cu12")
    third = build(here, small.tarred([small.file("third")]))
    capsys.readouterr()
    tags = pipeline.tag(here.workspace, third, here.host)
    assert "tfenv:2.15-cu12 is held back at" in capsys.readouterr().err
    assert NAME not in tags and set(tags) == set(small.TAGS) - {NAME}
    assert here.images.tags == {**dict.fromkeys(small.TAGS, third.image.id), NAME: old}


def test_run_takes_the_image_that_a_held_alias_means(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    two(here)

    def image(name: str) -> str:
        assert cli.run(["run", "--print", "--json", name]) == 0
        argv = json.loads(capsys.readouterr().out)["argv"]
        return next(str(word) for word in argv if word.startswith("tfenv:"))

    assert image("2.15-cu12") == small.TAGS[0]
    rollback("2.15-cu12")
    capsys.readouterr()
    assert image("2.15-cu12") == image("tfenv:2.15-cu12") == NAME
    assert image("2.15") == small.TAGS[0]


def test_released_it_follows_its_cell_again(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    _, new = two(here)
    assert rollback("2.15-cu12", "--release") == 2  # nothing holds it
    rollback("2.15-cu12")
    assert rollback("2.15-cu12", "--release") == 0
    assert here.images.tags[NAME] == new
    assert events(here)[-1].kind == "released"
    third = build(here, small.tarred([small.file("third")]))
    assert NAME in pipeline.tag(here.workspace, third, here.host)
    assert rollback("2.15-cu12", "--release", "--to", "2026-01-01") == 2


def test_twice_back_is_two_images_back(here: Place) -> None:
    from tfenv.report import write

    old, new = two(here, second="pass")
    third = build(here, small.tarred([small.file("third")]))
    pipeline.tag(here.workspace, third, here.host)
    here.images.loaded.update([old, new])
    assert rollback("2.15-cu12") == 0
    assert here.images.tags[NAME] == new
    write(report(new, "fail", 2, "H200"), here.store.root / "reports")  # it was bad after all
    assert rollback("2.15-cu12") == 0
    assert here.images.tags[NAME] == old


def test_a_canonical_name_means_its_lock_and_is_not_rolled_back(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    two(here)
    for name in (here.cell.name, small.TAGS[0], f"{here.cell.name}-unlocked"):
        assert rollback(name) == 2
        assert "canonical name" in capsys.readouterr().err


def test_an_image_that_left_the_engine_is_loaded_from_the_store(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """The store holds the last build of the same inputs: what another lock gave stays beside it."""
    old = build(here)
    pipeline.tag(here.workspace, old, here.host)
    record = next(iter(here.store.builds_dir.glob("*.json")))
    kept = record.read_text()
    new = build(here, small.tarred([small.file("new")]))
    pipeline.tag(here.workspace, new, here.host)
    here.store.write_record("f" * 64, json.loads(kept))
    here.images.loaded.discard(old.image.id)
    loads = here.images.loads
    assert rollback("2.15-cu12") == 3
    assert "loaded from the archive" in capsys.readouterr().err
    assert here.images.loads == loads + 1 and here.images.tags[NAME] == old.image.id


def test_an_image_that_is_nowhere_is_said_how_to_get_back(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = two(here)
    here.images.loaded.discard(old)
    before = events(here)
    assert rollback("2.15-cu12") == 1
    err = capsys.readouterr().err
    assert "tfenv rebuild SNAPSHOT" in err and f"git log -S{old}" in err
    assert here.images.tags[NAME] == new and events(here) == before


def test_without_a_history(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert rollback("2.15-cu12") == 2
    assert "nothing is written down of tfenv:2.15-cu12" in capsys.readouterr().err


# A real engine.


@pytest.mark.engine
def test_an_engine_keeps_an_image_that_lost_its_last_name(tmp_path: Path) -> None:
    """What a rollback relies on: the old image is still there by its digest, until somebody prunes."""
    import os

    import tiny
    from tfenv import images
    from tfenv.container import connect
    from tfenv.history import back
    from tfenv.history.moving import move
    from tfenv.store import Store

    store, name = Store(tmp_path / "store"), tiny.name()
    made = [imported(tmp_path, f"{name}{number}", str(number)) for number in range(2)]
    try:
        digests = [images.ids((one,), os.environ)[one] for one in made]
        move(images.find((made[0],), os.environ), (name,), os.environ, store.root, why="a test")
        with connect() as containers:
            containers.remove(made[0])
        move(images.find((made[1],), os.environ), (name,), os.environ, store.root, why="a test")
        done = back.roll_back(name, store, os.environ, lambda _: "pass")
        assert done.choice.event.after == digests[0]
        assert images.ids((name,), os.environ)[name] == digests[0]
        moved = move(images.find((made[1],), os.environ), (name,), os.environ, store.root, why="a test")
        assert moved.tags == () and moved.held[0].after == digests[0]
        assert back.release(name, made[1], store, os.environ) == digests[1]
    finally:
        with connect() as containers:
            for one in (name, *made):
                containers.remove(one)


def imported(folder: Path, name: str, content: str) -> str:
    """An image of one file, by that name."""
    import subprocess

    tar = folder / f"{content}.tar"
    tar.write_bytes(small.tarred([small.file("file", content.encode())]))
    subprocess.run(["docker", "import", str(tar), name], check=True, capture_output=True)
    return name
