"""What of a bisection is of no more use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tfenv.bisect.freeing import KEPT_DAYS, free
from tfenv.bisect.journal import NAME, Journal

NOW = 2_000_000_000.0
DAY = 24 * 3600
ID = "0123456789ab"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "bisect"


def bisection(root: Path, name: str = ID, *, days: float = 1, journal: bool = True) -> Path:
    folder = root / name
    for left in ("cache", "env/bin", "mount", "wheels", "logs"):
        (folder / left).mkdir(parents=True)
        (folder / left / "file").write_bytes(b"1234567890")
    (folder / "last-good.txt").write_text("a==1\n")
    if journal:
        with Journal(folder, {"a": 1}):
            pass
        os.utime(folder / NAME, (NOW - days * DAY,) * 2)
    os.utime(folder, (NOW - days * DAY,) * 2)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_made_anew_goes_and_what_was_learnt_stays(root: Path) -> None:
    folder = bisection(root)
    dry = free(root, now=NOW, dry_run=True)
    assert (dry.files, dry.bytes) == (4, 40) and len(names(folder)) == 7
    assert free(root, now=NOW) == dry
    assert names(folder) == [NAME, "last-good.txt", "logs"]
    assert free(root, now=NOW).files == 0
    with Journal(folder, {"a": 1}):
        pass  # it can be gone on with


def test_one_that_nobody_has_gone_on_with_goes_as_a_whole(root: Path) -> None:
    old, new = bisection(root, days=KEPT_DAYS + 1), bisection(root, "b" * 12, days=KEPT_DAYS - 1)
    never = bisection(root, "c" * 12, days=KEPT_DAYS + 1, journal=False)
    free(root, now=NOW)
    assert not old.exists() and not never.exists() and (new / NAME).is_file()


def test_one_that_somebody_works_on_is_left_alone(root: Path) -> None:
    folder = bisection(root, days=KEPT_DAYS + 1)
    with Journal(folder, {"a": 1}):
        os.utime(folder / NAME, (0, 0))
        assert free(root, now=NOW).files == 0
        assert (folder / "env/bin/file").exists()
    free(root, now=NOW)
    assert not folder.exists()


def test_what_has_another_name_too_frees_nothing(root: Path) -> None:
    folder = bisection(root)
    os.link(folder / "env/bin/file", folder / "logs/same")
    assert free(root, now=NOW).files == 3
    assert (folder / "logs/same").read_bytes() == b"1234567890"


def test_what_is_no_bisection_stays(root: Path, tmp_path: Path) -> None:
    assert free(root, now=NOW).files == 0
    other, elsewhere = bisection(root, "mine"), bisection(tmp_path / "elsewhere")
    (root / ID).symlink_to(elsewhere)
    (root / ("d" * 12)).write_text("a file")
    linked = bisection(root, "e" * 12)
    (tmp_path / "target").mkdir()
    (tmp_path / "target/file").write_text("x")
    for name in ("cache", "env", "mount", "wheels"):
        (linked / name).rename(linked / f"was-{name}")
    (linked / "env").symlink_to(tmp_path / "target")
    assert free(root, now=NOW).files == 0
    assert len(names(other)) == len(names(elsewhere)) == 7
    assert (tmp_path / "target/file").exists()
