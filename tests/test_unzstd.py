"""zstd with the package, with the program, with neither, and damaged."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tfenv.errors import IntegrityError, NotReadyError
from tfenv.unzstd import unzstd

PLAIN = bytes(range(256)) * 40_000
# Two frames, as an archive may have them.
PACKED = zstandard.compress(PLAIN[:5_000_000]) + zstandard.compress(PLAIN[5_000_000:])

# Where the program is not here, this stands in for it.
STAND_IN = """#!{python}
import sys, zstandard
try:
    reader = zstandard.ZstdDecompressor().stream_reader(sys.stdin.buffer, read_across_frames=True)
    while chunk := reader.read(1 << 16):
        sys.stdout.buffer.write(chunk)
except zstandard.ZstdError as error:
    sys.exit(f"zstd: {{error}}")
"""


@pytest.fixture
def which(tmp_path: Path) -> Callable[[str], str]:
    path = shutil.which("zstd")
    if path is None:
        made = tmp_path / "zstd"
        made.write_text(STAND_IN.format(python=sys.executable))
        made.chmod(0o755)
        path = str(made)
    return lambda _name: path


def read(packed: bytes, *, package: bool, **more: Any) -> bytes:
    with unzstd(io.BytesIO(packed), has_package=lambda: package, **more) as stream:
        return stream.read()


def test_the_package_reads_it() -> None:
    assert read(PACKED, package=True) == PLAIN


def test_the_program_reads_it_where_the_package_is_not(which: Callable[[str], str]) -> None:
    assert read(PACKED, package=False, which=which) == PLAIN


def test_a_reader_may_stop_early(which: Callable[[str], str]) -> None:
    with unzstd(io.BytesIO(PACKED), has_package=lambda: False, which=which) as stream:
        assert stream.read(10) == PLAIN[:10]


@pytest.mark.parametrize("damaged", [PACKED[:1000] + b"?" * 99 + PACKED[1099:], b"no zstd at all" * 99])
def test_what_is_damaged_is_said_to_be(damaged: bytes, which: Callable[[str], str]) -> None:
    with pytest.raises(IntegrityError, match="does not decompress"):
        read(damaged, package=False, which=which)


def test_with_neither_it_says_what_to_install() -> None:
    with pytest.raises(NotReadyError, match="nothing here can read") as raised:
        read(PACKED, package=False, which=lambda _name: None)
    assert "zstandard" in raised.value.remedy
