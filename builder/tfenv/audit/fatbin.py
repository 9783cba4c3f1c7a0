"""NVIDIA's fatbins: for which GPUs a library holds machine code (SASS), and for which only PTX.

A fatbin is a header and, for each GPU architecture, an entry with a header and a payload. NVIDIA publishes
no description; this one agrees with what cuobjdump lists.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tfenv.audit.elf import Elf
from tfenv.audit.lz4 import unpack

_MAGIC = struct.pack("<I", 0xBA55ED50)
_PTX, _SASS = 1, 2
_LZ4, _ZSTD = 0x2000, 0x8000
_OF_ONE_ARCHITECTURE = 0x800  # in a cubin's e_flags: sm_90a and the like
_HEAD = 1 << 13
_NAMES = 1 << 16
_VERSION = re.compile(rb"^\s*\.version\s+(\d+\.\d+)", re.MULTILINE)
_TARGET = re.compile(rb"^\s*\.target\s+(sm_\d+[a-z]?)", re.MULTILINE)
_ENTRY = re.compile(rb"\.entry\s+([\w$]+)")
_TEXT = re.compile(rb"\.text\.([\w$]+)\0")

#: What the kernels' names tell of where they come from; the first that fits.
KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("nccl", re.compile(r"^_Z\d+nccl", re.MULTILINE)),
    ("element-wise", re.compile(r"^[A-Z]\w*_kernel$", re.MULTILINE)),
    ("compiled", re.compile("")),
)


@dataclass(frozen=True)
class Group:
    """Fatbins that are alike.

    Args:
        kernels: a name of KINDS, or "" where no kernel is in them; section: of the library.
        sass: compute capabilities with machine code, ``9.0a`` for one architecture's own.
        ptx: (target, version of the language), e.g. ``("sm_80", "7.1")``.
    """

    kernels: str
    section: str
    sass: tuple[str, ...]
    ptx: tuple[tuple[str, str], ...]


def groups(elf: Elf) -> list[dict[str, Any]]:
    """The library's fatbins as JSON: groups, how many fatbins each has, and the first kernel of each."""
    count: Counter[Group] = Counter()
    first: dict[Group, str] = {}
    for section, entries in _fatbins(elf):
        # TensorFlow 2.10 to 2.12 were built with the entries in any order.
        ptx = sorted(entry.ptx() for entry in entries if entry.kind == _PTX)
        sass = [e.capability() for e in sorted(entries, key=lambda e: e.architecture) if e.kind == _SASS]
        names = next((names for entry in reversed(entries) if (names := entry.names())), [])
        named = "\n".join(names)
        kernels = next((kind for kind, pattern in KINDS if pattern.search(named)), "") if names else ""
        group = Group(kernels, section, tuple(sass), tuple(ptx))
        count[group] += 1
        first.setdefault(group, names[0] if names else "")
    return [
        {
            "kernels": group.kernels,
            "section": group.section,
            "fatbins": number,
            "sass": list(group.sass),
            "ptx": [{"target": target, "isa": isa} for target, isa in group.ptx],
            "first": first[group],
        }
        for group, number in sorted(count.items(), key=lambda item: (-item[1], item[0].section, item[0].sass))
    ]


@dataclass(frozen=True)
class _Entry:
    kind: int
    architecture: int
    isa: str
    flags: int
    payload: bytes
    size: int

    def head(self, most: int) -> bytes:
        if self.flags & _LZ4:
            return unpack(self.payload, min(most, self.size))
        if self.flags & _ZSTD:
            from zstandard import ZstdDecompressor, ZstdError

            # 128 kB of it may stand for gigabytes: no more than is wanted is unpacked.
            try:
                return bytes(ZstdDecompressor().stream_reader(self.payload).read(min(most, self.size)))
            except ZstdError as error:
                raise ValueError(str(error)) from error
        return self.payload[:most]

    def ptx(self) -> tuple[str, str]:
        """Its own text tells the target; the header only its number."""
        head = self.head(_HEAD)
        target, version = _TARGET.search(head), _VERSION.search(head)
        if target is None or version is None:
            raise ValueError("PTX without .version and .target")
        return target[1].decode(), version[1].decode()

    def capability(self) -> str:
        head = self.head(64)
        (flags,) = struct.unpack_from("<I", head, 0x30) if head[:4] == b"\x7fELF" else (0,)
        return capability(self.architecture) + ("a" if flags & _OF_ONE_ARCHITECTURE else "")

    def names(self) -> list[str]:
        """Its first kernels; a cubin's section names, which tell them, come first in it."""
        for most in (_HEAD, _NAMES):  # the first is mostly enough, and unpacking takes its time
            found = (_ENTRY if self.kind == _PTX else _TEXT).findall(self.head(most))
            names = [name.decode() for name in found if not name.startswith(b"__cuda_")]
            if names:
                return names
        return []


def capability(architecture: int) -> str:
    """``90`` is compute capability ``9.0``."""
    return f"{architecture // 10}.{architecture % 10}"


def _fatbins(elf: Elf) -> Iterator[tuple[str, list[_Entry]]]:
    """Every well-formed fatbin and the section that it is in; the magic number alone is none."""
    at = elf.data.find(_MAGIC)
    while at >= 0:
        section = elf.section_at(at)
        following = at + 4
        if section is not None:
            version, header, size = struct.unpack_from("<HHQ", elf.data, at + 4)
            start, end = at + header, at + header + size
            if version == 1 and header == 16 and size > 0 and end <= section.end:
                entries = _entries(elf.data, start, end)
                if entries:
                    yield section.name, entries
                    following = end
        at = elf.data.find(_MAGIC, following)


def _entries(data: Any, at: int, end: int) -> list[_Entry]:
    """The entries of one fatbin; [] where they do not fill it exactly."""
    found = []
    while at < end:
        if at + 64 > end:
            return []
        kind, _, header, padded, packed = struct.unpack_from("<HHIQI", data, at)
        minor, major, architecture = struct.unpack_from("<HHI", data, at + 24)
        (flags,) = struct.unpack_from("<Q", data, at + 40)
        (size,) = struct.unpack_from("<Q", data, at + 56)
        start = at + header
        if kind not in (_PTX, _SASS) or header < 64 or packed > padded or start + padded > end:
            return []
        # The first bytes tell; an entry has up to 50 MB.
        payload = data[start : start + min(packed or padded, _NAMES * 2)]
        found.append(_Entry(kind, architecture, f"{major}.{minor}", flags, payload, size or padded))
        at = start + padded
    return found
