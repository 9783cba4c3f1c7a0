"""A team's requirements file: what is taken, what is refused, and what is said then."""

from __future__ import annotations

from pathlib import Path

import pytest
import small
from hypothesis import given
from hypothesis import strategies as st
from tfenv.errors import UsageError
from tfenv.model import Cell
from tfenv.team.requirements import read_requirements, requirement


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    return small.workspace(tmp_path_factory.mktemp("team")).matrix.cells[0]


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("pandas", "pandas"),
        ("pandas>=2,<3", "pandas<3,>=2"),
        ("Pillow == 10.3.0", "Pillow==10.3.0"),
        ("uvicorn[standard, Foo_bar]~=0.29", "uvicorn[foo-bar,standard]~=0.29"),
        ("scikit-learn ; python_version >= '3.9'", "scikit-learn"),
        ("importlib-resources ; python_version < '3.9'", ""),
        ("pywin32; sys_platform == 'win32'", ""),
        ("jax==0.4.*", "jax==0.4.*"),
    ],
)
def test_what_is_taken(cell: Cell, text: str, taken: str) -> None:
    assert requirement(text, cell) == taken


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-e .", "editable"),
        ("--editable=git+https://example.com/x", "editable"),
        ("-c constraints.txt", "constraints"),
        ("--index-url https://example.com/simple", "index"),
        ("-i https://example.com/simple", "index"),
        ("--extra-index-url=https://example.com", "index"),
        ("-f wheels", "index"),
        ("--trusted-host example.com", "index"),
        ("--pre", "pre-release"),
        ("--require-hashes", "hashes"),
        ("--no-binary :all:", "an option"),
        ("git+https://example.com/x.git", "version control"),
        ("https://example.com/x-1.0-py3-none-any.whl", "a URL"),
        ("file:///tmp/x.whl", "a URL"),
        ("x @ https://example.com/x-1.0.whl", "fetched from a URL"),
        ("x @ file:///etc/passwd", "fetched from a URL"),
        ("./local", "a path"),
        ("../up", "a path"),
        ("/abs/olute", "a path"),
        ("~/home", "a path"),
        ("C:\\wheels\\x.whl", "a path"),
        ("x-1.0-py3-none-any.whl", "a path"),
        ("x==1.0 --hash=sha256:" + "0" * 64, "hashes"),
        ("x --hash=sha256:00", "hashes"),
        ("a b c", "no requirement"),
        ("x>=1,<2,!=1.1,!=1.2,!=1.3,!=1.4,!=1.5", "more than matrix.yaml takes"),
        ("$(touch /tmp/x)", "no requirement"),
        ("x==1; import os", "no requirement"),
    ],
)
def test_what_is_refused_and_why(cell: Cell, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        requirement(text, cell)


@given(text=st.text(max_size=60))
def test_whatever_it_is_it_is_taken_in_one_shape_or_refused(text: str) -> None:
    line = text.strip()
    if not line:
        return
    try:
        taken = requirement(line, _CELL)
    except ValueError:
        return
    assert not set(taken) & set(" \t\n'\"`$\\;&|()#")


def test_all_bad_lines_of_a_file_are_told_with_their_numbers(cell: Cell, tmp_path: Path) -> None:
    file = tmp_path / "requirements.in"
    file.write_text("pandas  # data\n\n-e .\nx \\\n  @ https://example.com/x.whl\n# comment\n")
    with pytest.raises(UsageError) as error:
        read_requirements(file, cell)
    lines = error.value.message.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{file}:3", f"{file}:4"]


def test_files_may_include_files_but_no_circle(cell: Cell, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.in").write_text("-r sub/b.in\npandas\n")
    (tmp_path / "sub/b.in").write_text("\ufeffsix\npandas\n", encoding="utf-8")
    assert read_requirements(tmp_path / "a.in", cell) == ("six", "pandas")
    (tmp_path / "sub/b.in").write_text("-r ../a.in\n")
    with pytest.raises(UsageError, match="includes itself"):
        read_requirements(tmp_path / "a.in", cell)


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"pywin32; sys_platform == 'win32'\n"])
def test_a_file_that_asks_for_nothing_is_refused(cell: Cell, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "requirements.in"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="asks for nothing"):
        read_requirements(file, cell)


def test_what_is_no_file_of_requirements(cell: Cell, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_requirements(tmp_path / "absent", cell)
    with pytest.raises(UsageError, match="cannot be read"):
        read_requirements(tmp_path, cell)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="no text"):
        read_requirements(tmp_path / "binary", cell)
    (tmp_path / "large").write_bytes(b"x\n" * 600_000)
    with pytest.raises(UsageError, match="larger than"):
        read_requirements(tmp_path / "large", cell)


def test_an_endless_line_is_refused_and_never_parsed(cell: Cell, tmp_path: Path) -> None:
    (tmp_path / "long").write_text("x" * 100_000 + ">=" + "1." * 10_000)
    with pytest.raises(UsageError, match="option"):
        read_requirements(tmp_path / "long", cell)


def _cell() -> Cell:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return small.workspace(Path(folder)).matrix.cells[0]


_CELL = _cell()


@pytest.mark.parametrize("name", ["loop", "/dev/zero", "missing"])
def test_a_file_that_leads_nowhere_or_does_not_end_is_refused(tmp_path: Path, cell: Cell, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match=r"cannot be read|is larger than"):
        read_requirements(tmp_path / name, cell)
