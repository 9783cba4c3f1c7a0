"""As much of a shared library's ELF structure as the audit needs: sections, and what it links to."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap

from tfenv.errors import IntegrityError

_NOTHING = 8  # SHT_NOBITS: has an address, but no bytes in the file
_NEEDED, _STRTAB, _RPATH, _RUNPATH = 1, 5, 15, 29
_TEXTS = (_NEEDED, _RPATH, _RUNPATH)
# TensorFlow's libraries have some 40 sections and as many texts, of a few kilobytes at most.
_MOST_SECTIONS, _MOST_TEXTS, _LONGEST = 1 << 12, 1 << 10, 1 << 16


@dataclass(frozen=True)
class Section:
    """A named part: ``address`` when loaded, ``offset`` and ``size`` in the file, in bytes."""

    name: str
    address: int
    offset: int
    size: int

    @property
    def end(self) -> int:
        """Offset of what comes after it."""
        return self.offset + self.size


class Elf:
    """A 64-bit little-endian ELF file.

    Raises:
        IntegrityError: it is none, or it was cut off.
    """

    def __init__(self, data: mmap, name: str) -> None:
        self.data, self.name = data, name
        try:
            self.sections = tuple(self._read())
            self._dynamic = self._texts()
        except (struct.error, ValueError, OverflowError) as error:
            raise IntegrityError(
                f"{name} is no 64-bit ELF library, or it was cut off",
                remedy="the wheel or the installation is damaged: fetch it again",
            ) from error

    def _read(self) -> Iterator[Section]:
        data = self.data
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        if names >= count or count > _MOST_SECTIONS:
            raise ValueError
        rows = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
        strings = rows[names][4]
        for name, kind, _, address, offset, length in rows:
            if kind == _NOTHING:
                continue
            if offset + length > len(data):
                raise ValueError
            yield Section(self._string(strings + name), address, offset, length)

    def _string(self, offset: int) -> str:
        end = self.data.find(b"\0", offset, offset + _LONGEST)
        if end < 0:
            raise ValueError
        return self.data[offset:end].decode()

    def section(self, name: str) -> Section | None:
        """The section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def section_at(self, offset: int) -> Section | None:
        """The section that a byte of the file is in."""
        return next((s for s in self.sections if s.name and s.offset <= offset < s.end), None)

    def _texts(self) -> list[tuple[int, str]]:
        table = self.section(".dynamic")
        if table is None:
            return []
        if table.size > 16 * _LONGEST:
            raise ValueError
        entries = list(struct.iter_unpack("<QQ", self.data[table.offset : table.offset + (table.size & ~15)]))
        if sum(t in _TEXTS for t, _ in entries) > _MOST_TEXTS:
            raise ValueError
        address = dict(entries).get(_STRTAB, 0)
        # patchelf moves it: the section named .dynstr may be the old one.
        strings = next((s for s in self.sections if s.address <= address < s.address + s.size), None)
        if strings is None:
            return []
        start = strings.offset + address - strings.address
        return [(t, self._string(start + value)) for t, value in entries if t in _TEXTS]

    @property
    def needed(self) -> tuple[str, ...]:
        """The sonames that it is linked to."""
        return tuple(value for tag, value in self._dynamic if tag == _NEEDED)

    @property
    def runpath(self) -> tuple[str, ...]:
        """The folders in which it looks for libraries itself, as they are written."""
        return tuple(
            folder for tag, value in self._dynamic if tag != _NEEDED for folder in value.split(":") if folder
        )

    def references(self, text: bytes) -> Iterator[int]:
        """Offsets of the instructions that take the address of a string which starts with ``text``.

        x86-64 code does so by ``lea disp32(%rip), register``.
        """
        code = self.section(".text")
        at = self.data.find(b"\0" + text)
        home = self.section_at(at + 1) if at >= 0 else None
        if code is None or home is None:
            return
        wanted = home.address + at + 1 - home.offset
        shift = code.address - code.offset
        for lea in _LEA.finditer(self.data, code.offset, code.end):
            here = lea.start()
            if here + 7 + shift + int.from_bytes(lea[1], "little", signed=True) == wanted:
                yield here


_LEA = re.compile(rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](.{4})", re.DOTALL)
