"""trim.py leaves out what the globs name, nothing else, and its RECORDs say what is there."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tfenv.resources import templates_dir

TRIM = templates_dir() / "tools" / "trim.py"
matcher = runpy.run_path(str(TRIM))["matcher"]


def install(site: Path, name: str, files: Mapping[str, str], extra: tuple[str, ...] = ()) -> Path:
    """A distribution as pip leaves it; ``extra`` are further lines of its RECORD."""
    info = f"{name}-1.0.dist-info"
    lines = []
    for path, text in {**files, f"{info}/METADATA": f"Name: {name}\n"}.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}")
    record = site / info / "RECORD"
    record.write_text("\n".join([*lines, *extra, f"{info}/RECORD,,"]) + "\n")
    return record


def trim(site: Path, *arguments: str) -> str:
    """Run it as the build does."""
    done = subprocess.run(
        [sys.executable, "-I", str(TRIM), str(site), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(site: Path) -> set[str]:
    return {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}


def recorded(record: Path) -> set[str]:
    with record.open(newline="") as file:
        return {row[0] for row in csv.reader(file) if row}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    found = tmp_path / "lib" / "python3.11" / "site-packages"
    found.mkdir(parents=True)
    return found


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("a/*", "a/", True),
        ("*/x", "a/x", True),
        ("*/x", "a/b/x", False),
        ("a/**", "a/b/c/d", True),
        ("a/**", "ab/c", False),
        ("**/x", "a/b/x", True),
        ("a/**/x", "a/b/c/x", True),
        ("lib*.so", "libx.so", True),
        ("lib*.so", "libxaso", False),
        ("lib?.so", "lib1.so", True),
        ("lib?.so", "lib12.so", False),
        ("a?b", "a/b", False),
        ("a+b.c", "a+b.c", True),
        ("a+b.c", "aab.c", False),
        ("a", "a/b", False),
        ("nvidia/*/include/**", "nvidia/cublas/include/cublas.h", True),
        ("nvidia/*/include/**", "nvidia/include/cublas.h", False),
    ],
)
def test_globs(glob: str, path: str, matches: bool) -> None:
    assert matcher([glob])(path) is matches


def test_no_glob_matches_nothing(site: Path) -> None:
    assert not matcher([])("")
    record = install(site, "one", {"one/a.py": "a"})
    before = record.read_bytes()
    trim(site)
    assert record.read_bytes() == before
    assert files(site) == recorded(record)


def test_what_is_named_goes_and_the_record_is_true(site: Path) -> None:
    record = install(site, "one", {"one/__init__.py": "x", "one/include/a.h": "a", "one/include/b/c.h": "c"})
    lines = set(record.read_text().splitlines())
    said = trim(site, "one/include/**")
    assert (
        recorded(record)
        == files(site)
        == {
            "one/__init__.py",
            "one-1.0.dist-info/METADATA",
            "one-1.0.dist-info/RECORD",
        }
    )
    assert set(record.read_text().splitlines()) < lines, "what stays keeps its line as it was"
    assert str(site) in said


def test_folders_that_become_empty_go_others_stay(site: Path) -> None:
    install(site, "one", {"one/include/deep/er/a.h": "a", "one/lib/x.so": "x"})
    (site / "empty").mkdir()
    trim(site, "one/include/**")
    assert not (site / "one" / "include").exists()
    assert (site / "one" / "lib").is_dir()
    assert (site / "empty").is_dir(), "it was empty before"


def test_the_folder_itself_stays_when_all_is_gone(site: Path) -> None:
    record = install(site, "one", {"one/a.py": "a"})
    trim(site, "**")
    assert files(site) == recorded(record) == {"one-1.0.dist-info/RECORD"}


def test_keep_wins(site: Path) -> None:
    record = install(site, "one", {"one/include/a.h": "a", "one/include/b.h": "b"})
    trim(site, "one/include/**", "--keep", "one/include/b.h")
    assert "one/include/b.h" in files(site)
    assert "one/include/a.h" not in files(site)
    assert recorded(record) == files(site)


def test_other_distributions_and_unrecorded_files_are_not_touched(site: Path) -> None:
    install(site, "one", {"one/include/a.h": "a"})
    other = install(site, "other", {"other/include/a.h": "a"})
    before = (other.read_bytes(), other.stat().st_mtime_ns)
    (site / "one" / "include" / "mine.h").write_text("not of a wheel")
    trim(site, "one/include/**")
    assert (other.read_bytes(), other.stat().st_mtime_ns) == before
    assert {"other/include/a.h", "one/include/mine.h"} <= files(site)


def test_a_file_of_two_distributions_goes_from_both_records(site: Path) -> None:
    first = install(site, "first", {"nvidia/__init__.py": "", "nvidia/first/a": "1"})
    second = install(site, "second", {"nvidia/__init__.py": "", "nvidia/second/a": "2"})
    trim(site, "nvidia/__init__.py")
    assert recorded(first) | recorded(second) == files(site)
    assert "nvidia/__init__.py" not in files(site)


def test_names_with_commas_and_quotes_are_read(site: Path) -> None:
    record = install(site, "one", {"one/a.py": "a"})
    odd = site / "one" / 'od,d "x".h'
    odd.write_text("odd")
    with record.open("a", newline="") as file:
        csv.writer(file).writerow(['one/od,d "x".h', "", ""])
    trim(site, "one/a.py")
    assert recorded(record) == files(site)
    trim(site, "one/*.h")
    assert not odd.exists()


@pytest.mark.parametrize("glob", ["**", "**/x", "*/*/*/bin/x", "../../../bin/x"])
def test_nothing_outside_the_folder_is_removed(site: Path, glob: str) -> None:
    script = site.parent.parent.parent / "bin" / "x"
    script.parent.mkdir()
    script.write_text("#!")
    lines = ("../../../bin/x,sha256=abc,2", f"{script},sha256=abc,2", "one/../../../../bin/x,,")
    record = install(site, "one", {"one/a.py": "a"}, lines)
    trim(site, glob)
    assert script.read_text() == "#!"
    assert {"../../../bin/x", str(script)} <= recorded(record)


def test_a_script_beside_what_is_trimmed_is_no_trouble(site: Path) -> None:
    record = install(site, "one", {"one/a.h": "a"}, ("../../../bin/missing,sha256=abc,2", ""))
    trim(site, "one/a.h")
    assert "../../../bin/missing" in recorded(record)


def test_a_link_is_removed_and_not_what_it_points_to(site: Path) -> None:
    target = site.parent / "target"
    target.write_text("t")
    record = install(site, "one", {"one/a.py": "a"}, ("one/link,,", "one/dangling,,"))
    (site / "one" / "link").symlink_to(target)
    (site / "one" / "dangling").symlink_to("nowhere")
    trim(site, "one/link", "one/dangling")
    assert target.exists()
    assert not os.path.lexists(site / "one" / "link")
    assert not os.path.lexists(site / "one" / "dangling")
    assert recorded(record) == files(site)


def test_trimming_twice_changes_nothing_more(site: Path) -> None:
    record = install(site, "one", {"one/a.h": "a", "one/b.py": "b"})
    trim(site, "one/*.h")
    before = record.read_bytes()
    trim(site, "one/*.h")
    assert record.read_bytes() == before
