from __future__ import annotations

import importlib.util
import os
import py_compile
from pathlib import Path

import pytest
from tfenv_verify.checks import pyc
from tfenv_verify.protocol import Report

TIMED = py_compile.PycInvalidationMode.TIMESTAMP
CHECKED = py_compile.PycInvalidationMode.CHECKED_HASH
UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH


def compiled(folder: Path, mode: py_compile.PycInvalidationMode) -> Path:
    source = folder / "module.py"
    source.write_text("x = 1\n")
    py_compile.compile(str(source), invalidation_mode=mode, doraise=True)
    return source


def inspect(folder: Path) -> Report:
    report = Report()
    pyc.inspect([str(folder)], report)
    return report


@pytest.mark.parametrize("mode", [TIMED, CHECKED, UNCHECKED])
def test_fresh_ones_pass(tmp_path: Path, mode: py_compile.PycInvalidationMode) -> None:
    compiled(tmp_path, mode)
    report = inspect(tmp_path)
    assert report.status == "pass"
    assert (report.facts["good"], report.facts["uncompiled"]) == (1, 0)


@pytest.mark.parametrize(
    ("mode", "why"),
    [(TIMED, "time"), (CHECKED, "checked hash"), (UNCHECKED, "unchecked hash")],
)
def test_a_changed_source_makes_them_stale(
    tmp_path: Path, mode: py_compile.PycInvalidationMode, why: str
) -> None:
    source = compiled(tmp_path, mode)
    source.write_text("x = 2\n")
    os.utime(source, (1, 1))
    report = inspect(tmp_path)
    assert report.status == "fail"
    assert why in report.findings[0]["message"]


def test_a_changed_time_alone_makes_a_timed_one_stale(tmp_path: Path) -> None:
    """What rewriting the times of an image's files does."""
    os.utime(compiled(tmp_path, TIMED), (1, 1))
    assert inspect(tmp_path).status == "fail"


def test_a_changed_time_alone_leaves_a_hashed_one(tmp_path: Path) -> None:
    os.utime(compiled(tmp_path, UNCHECKED), (1, 1))
    assert inspect(tmp_path).status == "pass"


def test_headers() -> None:
    magic, source = importlib.util.MAGIC_NUMBER, b"x = 1\n"
    timed = magic + bytes(4) + (7).to_bytes(4, "little") + (6).to_bytes(4, "little")
    assert pyc.staleness(timed, source, 7) == ""
    assert pyc.staleness(timed, source + b"#", 7) == "size differs from the source"
    assert pyc.staleness(timed[:10], source, 7) == "cut short"
    assert pyc.staleness(b"\0\0\0\0" + timed[4:], source, 7) == "of another Python"


def test_many_uncompiled_sources_are_a_warning(tmp_path: Path) -> None:
    for n in range(pyc.UNCOMPILED_LIMIT):
        (tmp_path / f"m{n}.py").write_text("")
    assert inspect(tmp_path).findings == []
    (tmp_path / "one_more.py").write_text("")
    report = inspect(tmp_path)
    assert [f["severity"] for f in report.findings] == ["warning"]


def test_a_pyc_without_source_is_said(tmp_path: Path) -> None:
    compiled(tmp_path, UNCHECKED).unlink()
    report = inspect(tmp_path)
    assert (report.status, report.facts["orphans"]) == ("pass", 1)


def test_files_of_another_interpreter_are_left_alone(tmp_path: Path) -> None:
    compiled(tmp_path, UNCHECKED)
    (tmp_path / "__pycache__/module.cpython-36.pyc").write_bytes(b"old")
    report = inspect(tmp_path)
    assert (report.status, report.facts["good"]) == ("pass", 1)
