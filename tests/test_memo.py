"""Kept results: found again, dropped when damaged, and named by all that decides them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tfenv import memo as module
from tfenv.memo import DECIDING, Memo, code_version, hash_of

PACKAGE = Path(module.__file__).parent


@pytest.fixture
def memo(tmp_path: Path) -> Memo:
    return Memo(tmp_path / "memo")


def kept(memo: Memo) -> list[Path]:
    return sorted(memo.folder.iterdir()) if memo.folder and memo.folder.exists() else []


def test_what_is_put_is_got(memo: Memo) -> None:
    memo.put("k", {"a": [1, "ü"]})
    assert memo.get("k") == {"a": [1, "ü"]}
    assert memo.get("other") is None
    assert [path.name for path in kept(memo)] == ["k.json"]


def test_without_a_folder_nothing_is_kept() -> None:
    memo = Memo(None)
    memo.put("k", 1)
    assert memo.get("k") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-1],
        lambda raw: raw.replace(b"1", b"2"),
        lambda raw: raw.partition(b"\n")[2],
        lambda raw: b"",
        lambda raw: b"\xff" * 200,
        lambda raw: b"[]",
    ],
    ids=["cut off", "altered", "without its hash", "empty", "no text", "other JSON"],
)
def test_a_damaged_result_is_none(memo: Memo, damage: Callable[[bytes], bytes]) -> None:
    memo.put("k", {"a": 1})
    (path,) = kept(memo)
    path.write_bytes(damage(path.read_bytes()))
    assert memo.get("k") is None
    memo.put("k", {"a": 3})
    assert memo.get("k") == {"a": 3}


def test_a_result_under_another_key_is_none(memo: Memo) -> None:
    memo.put("k", 1)
    (path,) = kept(memo)
    shutil.copy(path, path.with_name("other.json"))
    assert memo.get("other") is None


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    memo = Memo(tmp_path / "file" / "memo")
    memo.put("k", 1)
    assert memo.get("k") is None
    assert memo.recall(lambda: "k", lambda: 5, lambda v: v, lambda v: v) == 5


def recall(memo: Memo, keys: Iterator[str | None], made: list[int], load: Callable[[Any], int] = int) -> int:
    """The number of the call that made the value."""

    def make() -> int:
        made.append(len(made) + 1)
        return made[-1]

    return memo.recall(lambda: next(keys), make, str, load)


def test_made_once_per_key(memo: Memo) -> None:
    made: list[int] = []
    assert recall(memo, iter("aa"), made) == recall(memo, iter("a"), made) == 1
    assert recall(memo, iter("bb"), made) == 2


def test_not_kept_when_its_sources_changed_meanwhile(memo: Memo) -> None:
    assert recall(memo, iter("ab"), []) == 1
    assert kept(memo) == []


def test_not_kept_without_a_key(memo: Memo) -> None:
    assert recall(memo, iter([None]), []) == 1
    assert kept(memo) == []


def test_made_anew_when_it_cannot_be_loaded(memo: Memo) -> None:
    memo.put("a", "no number")
    assert recall(memo, iter("aa"), []) == 1
    assert memo.get("a") == "1"


def test_errors_are_not_kept(memo: Memo) -> None:
    def fail() -> int:
        raise RuntimeError("wrong")

    for _ in range(2):
        with pytest.raises(RuntimeError):
            memo.recall(lambda: "a", fail, str, int)
    assert kept(memo) == []


def test_parts_do_not_run_into_each_other() -> None:
    assert len({hash_of(b"ab", b"c"), hash_of(b"a", b"bc"), hash_of(b"abc"), hash_of(b"abc", b"")}) == 4


@pytest.fixture
def package(tmp_path: Path) -> Path:
    copy = tmp_path / "tfenv"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def version(package: Path, *search: Path) -> str:
    return code_version.__wrapped__(package, tuple(map(str, search)))


def test_the_same_code_elsewhere_is_the_same_version(package: Path) -> None:
    assert version(package) == version(PACKAGE)
    (package / "notes.txt").write_text("of no weight")
    assert version(package) == version(PACKAGE)


@pytest.mark.parametrize(
    "name",
    [
        "schema.py",
        "matrix.py",
        "refusals.py",
        "compat/serving.py",
        "model/matrix.py",
        "team/expand.py",
        "team/extras.json",
        "facts.py",
        "facts/tensorflow.json",
        "facts/drivers.json",
    ],
)
def test_a_changed_source_or_fact_is_another_version(package: Path, name: str) -> None:
    before = version(package)
    (package / name).write_bytes((package / name).read_bytes() + b"\n")
    assert version(package) != before


def test_all_that_reads_a_matrix_or_renders_is_part_of_the_version() -> None:
    names = "tfenv.matrix, tfenv.lockfile, tfenv.render, tfenv.team.committed"
    script = f"import sys, {names}; print(*(n for n in sys.modules if n.startswith('tfenv.')))"
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    loaded = [PACKAGE.joinpath(*name.split(".")[1:]) for name in done.stdout.split()]
    known = {path for pattern in DECIDING for path in PACKAGE.glob(pattern)}
    assert len(loaded) > 20
    assert [path for path in loaded if not {path.with_suffix(".py"), path / "__init__.py"} & known] == []


def test_a_new_module_is_another_version(package: Path) -> None:
    before = version(package)
    (package / "more.py").write_text("")
    assert version(package) != before


def test_another_version_of_a_dependency_is_another_version(package: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "pydantic-2.8.0.dist-info").mkdir(parents=True)
    before = version(package, site, tmp_path / "absent")
    (site / "pydantic-2.8.0.dist-info").rename(site / "pydantic-2.9.0.dist-info")
    assert version(package, site, tmp_path / "absent") != before
