"""The matrix and the rendered files as they were kept, and when they are not taken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small
from hypothesis import HealthCheck, given, settings
from matrices import TEXT, changed, expand, specs
from tfenv import cli, matrix_cache, resources
from tfenv.errors import MatrixError
from tfenv.matrix import load_matrix
from tfenv.matrix_cache import cached_matrix, matrix_key
from tfenv.memo import Memo
from tfenv.model import Matrix
from tfenv.render_cache import cached_files, files_key

ROOT = Path(__file__).resolve().parent.parent


class Loads:
    """``load_matrix``, counted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, path: Path) -> Matrix:
        self.count += 1
        return load_matrix(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.yaml"
    path.write_text(small.TWO_BASES, encoding="utf-8")
    return path


@pytest.fixture
def memo(tmp_path: Path) -> Memo:
    return Memo(tmp_path / "memo")


def test_read_once_and_the_same_again(path: Path, memo: Memo) -> None:
    load = Loads()
    first = cached_matrix(path, memo, load=load)
    assert cached_matrix(path, memo, load=load) == first == load_matrix(path)
    assert load.count == 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(spec=specs())
def test_any_matrix_is_kept_as_it_is(tmp_path: Path, spec: dict[str, Any]) -> None:
    try:
        matrix = expand(tmp_path, spec)
    except MatrixError:
        return
    assert matrix_cache._load(json.loads(json.dumps(matrix_cache._dump(matrix)))) == matrix


def test_a_changed_matrix_is_read_anew(path: Path, memo: Memo) -> None:
    load = Loads()
    cached_matrix(path, memo, load=load)
    path.write_text(changed("repository: tfenv", "repository: other"), encoding="utf-8")
    assert cached_matrix(path, memo, load=load).repository == "other"
    assert load.count == 2


def test_other_code_or_facts_read_it_anew(path: Path, memo: Memo) -> None:
    load = Loads()
    cached_matrix(path, memo, load=load, code=lambda: "a")
    cached_matrix(path, memo, load=load, code=lambda: "b")
    assert load.count == 2


def test_a_damaged_kept_matrix_is_read_anew(path: Path, memo: Memo) -> None:
    load = Loads()
    first = cached_matrix(path, memo, load=load)
    assert memo.folder is not None
    (kept,) = memo.folder.iterdir()
    kept.write_bytes(kept.read_bytes().replace(b"2.15.1", b"2.15.0"))
    assert cached_matrix(path, memo, load=load) == first
    assert load.count == 2


@pytest.mark.parametrize("value", [{}, [], "x", {"cells": [[7, "3.11", 0]]}])
def test_a_kept_value_that_is_no_matrix_is_read_anew(path: Path, memo: Memo, value: Any) -> None:
    cached_matrix(path, memo)
    key = matrix_key(path)
    assert key is not None
    if isinstance(value, dict) and value:
        value = {**memo.get(key), **value}
    memo.put(key, value)
    assert cached_matrix(path, memo) == load_matrix(path)


def test_a_wrong_matrix_is_told_every_time(path: Path, memo: Memo) -> None:
    path.write_text(changed("repository: tfenv", "repository: 'A B'"), encoding="utf-8")
    load = Loads()
    for _ in range(2):
        with pytest.raises(MatrixError, match="repository"):
            cached_matrix(path, memo, load=load)
    assert load.count == 2 and not (memo.folder and memo.folder.exists())


def test_what_is_no_sane_file_has_no_key_and_the_usual_error(tmp_path: Path, memo: Memo) -> None:
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * 1_000_001)
    for odd in (tmp_path, tmp_path / "absent", Path("/" + "x" * 5000), Path(os.devnull), large):
        assert matrix_key(odd) is None
        with pytest.raises(MatrixError):
            cached_matrix(odd, memo)


def test_files_are_rendered_once_per_lock_and_cell(path: Path, memo: Memo) -> None:
    first, second = load_matrix(path).cells
    made: list[str] = []

    def files(cell: Any, lock: bytes, code: str = "a") -> dict[str, str]:
        def make() -> dict[str, str]:
            made.append(cell.name)
            return {"Dockerfile": f"{cell.name} {lock!r}"}

        return cached_files(cell, lambda: lock, memo, make, code=lambda: code)

    assert files(first, b"1") == files(first, b"1")
    assert len(made) == 1
    files(second, b"1"), files(first, b"2"), files(first, b"1", "b")
    assert len(made) == 4


def test_other_templates_are_rendered_anew(
    path: Path, tmp_path: Path, fresh_templates: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = load_matrix(path).cells[0]
    before = files_key(cell, lambda: b"lock")
    templates = tmp_path / "templates"
    shutil.copytree(resources.templates_dir(), templates)
    monkeypatch.setattr(resources, "templates_dir", lambda: templates)
    assert files_key(cell, lambda: b"lock") == before
    (templates / "tools" / "more.sh").write_text("")
    assert files_key(cell, lambda: b"lock") != before


@pytest.mark.parametrize("value", [[], {"Dockerfile": 1}])
def test_kept_files_that_are_none_are_rendered_anew(path: Path, memo: Memo, value: Any) -> None:
    cell = load_matrix(path).cells[0]
    key = files_key(cell, lambda: b"lock")
    assert key is not None
    memo.put(key, value)
    assert cached_files(cell, lambda: b"lock", memo, lambda: {"a": "b"}) == {"a": "b"}


# The command line, in processes of its own.

_PROBE = """\
import sys
from tfenv.cli import run
code = run(sys.argv[1:])
heavy = {"pydantic", "ruamel.yaml", "jinja2", "packaging", "docker"}
print(code, *sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


@pytest.fixture
def tfenv(tmp_path: Path) -> Callable[..., tuple[str, list[str]]]:
    """Run tfenv from a copy of the package: what it printed, and its exit code and heavy imports."""
    copy = tmp_path / "copy"
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("builder", "templates"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignore)
    team = small.workspace(tmp_path / "team").start
    env = {**os.environ, "PYTHONPATH": str(copy / "builder"), "TFENV_CACHE": str(tmp_path / "store")}
    env.pop("TFENV_MATRIX", None)

    def run(*arguments: str) -> tuple[str, list[str]]:
        argv = [sys.executable, "-c", _PROBE, *arguments]
        done = subprocess.run(argv, env=env, cwd=team, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr.splitlines()[-1].split()

    return run


READS = {"pydantic", "ruamel.yaml"}


def test_a_second_render_imports_nothing_heavy(tfenv: Callable[..., tuple[str, list[str]]]) -> None:
    first, (code, *imported) = tfenv("render")
    assert code == "0" and {*READS, "jinja2"} <= set(imported)
    assert tfenv("render") == (first, ["0"])
    # --check holds the lock against the facts, whose versions `packaging` compares.
    assert tfenv("render", "--check") == (first, ["0", "packaging"])


def test_another_matrix_is_read(tfenv: Callable[..., tuple[str, list[str]]], tmp_path: Path) -> None:
    tfenv("list")
    assert not READS & set(tfenv("list")[1])
    (tmp_path / "team" / "matrix.yaml").write_text(TEXT + "\n# more\n", encoding="utf-8")
    assert set(tfenv("list")[1]) >= READS


def test_other_facts_are_read(tfenv: Callable[..., tuple[str, list[str]]], tmp_path: Path) -> None:
    assert "2.15.1" in tfenv("list")[0]
    facts = tmp_path / "copy" / "builder" / "tfenv" / "facts" / "tensorflow.json"
    known = json.loads(facts.read_text("utf-8"))
    known["2.15.1"]["pythons"] = ["3.9"]
    facts.write_text(json.dumps(known), encoding="utf-8")
    out, imported = tfenv("list", "--refused")
    assert "has no wheel for Python 3.11" in out and set(imported) >= READS


def test_other_code_reads_anew(tfenv: Callable[..., tuple[str, list[str]]], tmp_path: Path) -> None:
    tfenv("list")
    source = tmp_path / "copy" / "builder" / "tfenv" / "refusals.py"
    source.write_text(source.read_text("utf-8").replace("has no wheel", "lacks a wheel"), encoding="utf-8")
    assert set(tfenv("list")[1]) >= READS


def test_a_damaged_lock_is_told_though_its_files_were_kept(
    tfenv: Callable[..., tuple[str, list[str]]], tmp_path: Path
) -> None:
    tfenv("render")
    lock = tmp_path / "team" / "images" / small.CELL / "lock.json"
    lock.write_bytes(lock.read_bytes() + b" ")
    assert tfenv("render")[1][0] == "1"


def test_drift_is_found_though_the_files_were_kept(
    tfenv: Callable[..., tuple[str, list[str]]], tmp_path: Path
) -> None:
    tfenv("render")
    dockerfile = tmp_path / "team" / "images" / small.CELL / "Dockerfile"
    good = dockerfile.read_bytes()
    dockerfile.write_bytes(good + b"RUN true\n")
    assert tfenv("render", "--check") == ("", ["1", "packaging"])
    assert tfenv("render")[1] == ["0"] and dockerfile.read_bytes() == good


def test_a_store_that_cannot_be_written_is_no_error(
    tfenv: Callable[..., tuple[str, list[str]]], tmp_path: Path
) -> None:
    (tmp_path / "store").write_text("a file, not a folder")
    assert tfenv("render")[1][0] == tfenv("render")[1][0] == "0"


def test_gc_keeps_what_is_current_and_removes_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = small.place(tmp_path, monkeypatch)
    assert cli.run(["render"]) == 0
    current = set(here.store.memo_dir.iterdir())
    assert len(current) == 2
    stale = here.store.memo_dir / f"{'0' * 64}.json"
    stale.write_text("x")
    assert cli.run(["gc", "--dry-run"]) == 0 and stale.exists()
    assert cli.run(["gc"]) == 0
    assert set(here.store.memo_dir.iterdir()) == current
    assert cli.run(["gc", "--everything"]) == 0
    assert list(here.store.memo_dir.iterdir()) == []


def test_nothing_is_kept_where_no_place_is_named(path: Path) -> None:
    assert small.Workspace(path.parent, {}).memo.folder is None
    assert small.Workspace(path.parent, {"HOME": "/h"}).memo.folder == Path("/h/.cache/tfenv/memo")
