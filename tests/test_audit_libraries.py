"""LZ4, ELF, fatbins and the code that names cuDNN: read rightly, and never guessed."""

from __future__ import annotations

import contextlib
import mmap
import struct
from pathlib import Path

import pytest
from audit_fakes import elf, fatbin, library, literals, ptx, sass, stored, written
from hypothesis import given
from hypothesis import strategies as st
from tfenv.audit.cudnn import compiled_with
from tfenv.audit.elf import Elf
from tfenv.audit.fatbin import capability, groups
from tfenv.audit.lz4 import unpack
from tfenv.errors import IntegrityError


def opened(folder: Path, data: bytes) -> Elf:
    path = folder / "lib.so"
    path.write_bytes(data)
    with path.open("rb") as file:
        return Elf(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), "lib.so")


# --- LZ4 -------------------------------------------------------------------------------------------


@given(st.binary(max_size=700))
def test_literals_are_unpacked(data: bytes) -> None:
    assert unpack(literals(data), len(data) + 1) == data


def test_a_match_repeats_what_it_makes() -> None:
    block = bytes([0x23]) + b"ab" + struct.pack("<H", 2) + bytes([0x10]) + b"!"
    assert unpack(block, 99) == b"ababababa!"


def test_long_lengths_go_on_in_more_bytes() -> None:
    block = bytes([0x1F]) + b"x" + struct.pack("<H", 1) + bytes([255, 10]) + bytes([0x10]) + b"!"
    assert unpack(block, 999) == b"x" * (1 + 4 + 15 + 255 + 10) + b"!"


def test_only_the_first_bytes_are_unpacked() -> None:
    block = bytes([0x1F]) + b"x" + struct.pack("<H", 1) + bytes([255] * 1000)
    with pytest.raises(ValueError, match="ends within a length"):
        unpack(block, 9)
    assert len(unpack(bytes([0x1F]) + b"x" + struct.pack("<H", 1) + bytes([0]) + b"\xff" * 99, 9)) == 20


@pytest.mark.parametrize(
    "block", [b"\x50ab", b"\x10a\x05\x00", b"\x10a\x00\x00", b"\x10a\x01", b"\xf0", b"\xf0\xff"]
)
def test_what_is_no_lz4_block_is_refused(block: bytes) -> None:
    with pytest.raises(ValueError, match="LZ4"):
        unpack(block, 99)


@given(st.binary(max_size=200))
def test_any_bytes_are_unpacked_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert len(unpack(data, 1000)) < 1000 + 255 * 200 + 20


# --- ELF -------------------------------------------------------------------------------------------


def test_sections_and_what_is_linked(tmp_path: Path) -> None:
    made = opened(tmp_path, elf({".text": b"code"}, ("libc.so.6",), "$ORIGIN/../nvidia/cudnn/lib:/x"))
    text = made.section(".text")
    assert text is not None
    assert made.data[text.offset : text.end] == b"code"
    assert made.section_at(text.offset + 3) == text
    assert made.needed == ("libc.so.6",)
    assert made.runpath == ("$ORIGIN/../nvidia/cudnn/lib", "/x")


def test_a_library_that_links_to_nothing(tmp_path: Path) -> None:
    made = opened(tmp_path, elf({".text": b"code"}))
    assert (made.needed, made.runpath) == ((), ())


@pytest.mark.parametrize("cut", [3, 40, 64, 200, -65])
def test_a_library_that_was_cut_off(tmp_path: Path, cut: int) -> None:
    with pytest.raises(IntegrityError, match="ELF"):
        opened(tmp_path, elf({".text": b"code" * 40})[:cut])


def test_another_kind_of_elf(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError):
        opened(tmp_path, b"\x7fELF\x01\x01" + elf({".text": b"code"})[6:])


# --- fatbins ---------------------------------------------------------------------------------------


def test_what_a_fatbin_holds(tmp_path: Path) -> None:
    one = fatbin(sass(50), sass(75), ptx("sm_80", "8.1"))
    other = fatbin(ptx("sm_80", "8.1"), sass(75), sass(50))
    (found,) = groups(opened(tmp_path, library(one + other)))
    assert found == {
        "kernels": "compiled",
        "section": ".nv_fatbin",
        "fatbins": 2,
        "sass": ["5.0", "7.5"],
        "ptx": [{"target": "sm_80", "isa": "8.1"}],
        "first": "_Z3addv",
    }


def test_the_target_is_that_of_the_text(tmp_path: Path) -> None:
    (found,) = groups(opened(tmp_path, library(fatbin(sass(90, own=True), ptx("sm_90a", "8.5")))))
    assert found["ptx"] == [{"target": "sm_90a", "isa": "8.5"}]
    assert found["sass"] == ["9.0a"]


def test_kinds_of_kernels(tmp_path: Path) -> None:
    nccl = fatbin(sass(80, "_Z21ncclDevKernel_Generic24ncclDevKernelArgs"))
    mock = fatbin(sass(80, "_ZN3xla3gpu14mock_nccl_callEj"), ptx(kernel="_ZN3xla3gpu14mock_nccl_callEj"))
    mlir = fatbin(ptx(kernel="Cast_GPU_DT_BOOL_DT_INT8_kernel"))
    old = fatbin(sass(80, "Abs_kernel"))
    found = {
        (g["section"], g["first"]): g["kernels"]
        for g in groups(opened(tmp_path, library(nccl + mock, mlir + old)))
    }
    assert found == {
        (".nv_fatbin", "_Z21ncclDevKernel_Generic24ncclDevKernelArgs"): "nccl",
        (".nv_fatbin", "_ZN3xla3gpu14mock_nccl_callEj"): "compiled",
        (".rodata", "Cast_GPU_DT_BOOL_DT_INT8_kernel"): "element-wise",
        (".rodata", "Abs_kernel"): "element-wise",
    }


def test_functions_of_the_compiler_do_not_name_a_fatbin(tmp_path: Path) -> None:
    kind, architecture, flags, cubin = sass(80, "__cuda_sm20_rem_u64")
    one = fatbin((kind, architecture, flags, cubin + b".text._Z14ncclKernelMainv\0"))
    assert groups(opened(tmp_path, library(one)))[0]["kernels"] == "nccl"


def test_payloads_that_are_not_packed(tmp_path: Path) -> None:
    kind, architecture, _, text = ptx()
    assert groups(opened(tmp_path, library(fatbin((kind, architecture, 0x11, text)))))[0]["ptx"]


def test_payloads_packed_with_zstandard(tmp_path: Path) -> None:
    import zstandard

    kind, architecture, _, text = ptx("sm_90", "8.5")
    packed = zstandard.compress(text)
    (found,) = groups(opened(tmp_path, library(fatbin((kind, architecture, 0x8011, packed)))))
    assert found["ptx"] == [{"target": "sm_90", "isa": "8.5"}]


def test_the_magic_number_alone_is_no_fatbin(tmp_path: Path) -> None:
    good, alone = fatbin(sass(80)), struct.pack("<I", 0xBA55ED50)
    wrong_version = good[:4] + struct.pack("<H", 9) + good[6:]
    too_long = good[:8] + struct.pack("<Q", 1 << 40) + good[16:]
    wrong_kind = good[:16] + struct.pack("<H", 7) + good[18:]
    too_large_entry = good[:24] + struct.pack("<Q", 1 << 40) + good[32:]
    mixed = alone + b"....", wrong_version, wrong_kind, too_large_entry, too_long
    assert groups(opened(tmp_path, library(b"".join(mixed)))) == []
    assert len(groups(opened(tmp_path, library(alone + b"...." + good)))) == 1


def test_ptx_that_tells_no_target_is_refused(tmp_path: Path) -> None:
    broken = fatbin((1, 80, 0x2011, b"no ptx at all"))
    with pytest.raises(ValueError, match=r"\.target"):
        groups(opened(tmp_path, library(broken)))


@pytest.mark.parametrize(("number", "name"), [(35, "3.5"), (90, "9.0"), (103, "10.3"), (121, "12.1")])
def test_capabilities(number: int, name: str) -> None:
    assert capability(number) == name


# --- cuDNN -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [stored, written])
@pytest.mark.parametrize("version", [(8, 9, 4), (8, 1, 0), (8, 0, 4), (9, 10, 0)])
def test_the_cudnn_of_the_complaint(tmp_path: Path, make: object, version: tuple[int, int, int]) -> None:
    instructions = make(*version) + b"\x90" * 40  # type: ignore[operator]
    made = opened(tmp_path, library(instructions=instructions))
    assert compiled_with(made, str(version[0])) == ".".join(map(str, version))


def test_a_minor_version_of_zero_is_one_short_store(tmp_path: Path) -> None:
    store = b"\x48\xc7\x85\x28\xfc\xff\xff\x08\0\0\0\xc7\x85\x30\xfc\xff\xff\x04\0\0\0"
    assert compiled_with(opened(tmp_path, library(instructions=store)), "8") == "8.0.4"


def test_other_code_tells_no_cudnn(tmp_path: Path) -> None:
    assert compiled_with(opened(tmp_path, library()), "8") == ""
    assert compiled_with(opened(tmp_path, library(instructions=stored(7, 6, 5))), "8") == ""
    assert compiled_with(opened(tmp_path, library(instructions=stored(8, 900, 5))), "8") == ""
    assert compiled_with(opened(tmp_path, elf({".text": stored(8, 9, 4)})), "8") == ""


def test_two_answers_are_none(tmp_path: Path) -> None:
    both = stored(8, 9, 4) + b"\x90" * 20 + stored(8, 6, 0)
    assert compiled_with(opened(tmp_path, library(instructions=both)), "8") == ""
