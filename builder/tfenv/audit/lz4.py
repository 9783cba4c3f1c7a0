"""The LZ4 block format, as far as a fatbin's payloads need it: unpack the first bytes, not the rest.

The format: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
"""

from __future__ import annotations


def unpack(data: bytes, most: int) -> bytes:
    """Up to ``most`` bytes (and a few more) of what an LZ4 block holds.

    Raises:
        ValueError: it is no LZ4 block.
    """
    out = bytearray()
    at, end = 0, len(data)
    while at < end and len(out) < most:
        token = data[at]
        length, at = _length(data, at + 1, token >> 4)
        if at + length > end:
            raise ValueError("literals beyond the end of the LZ4 block")
        out += data[at : at + length]
        at += length
        if at >= end:
            break
        distance = int.from_bytes(data[at : at + 2], "little")
        if distance == 0 or distance > len(out) or at + 2 > end:
            raise ValueError("a match before the start of the LZ4 block")
        length, at = _length(data, at + 2, token & 15)
        _repeat(out, distance, length + 4)
    return bytes(out)


def _length(data: bytes, at: int, nibble: int) -> tuple[int, int]:
    length = nibble
    more = nibble == 15
    while more:
        if at >= len(data):
            raise ValueError("the LZ4 block ends within a length")
        length += data[at]
        more = data[at] == 255
        at += 1
    return length, at


def _repeat(out: bytearray, distance: int, length: int) -> None:
    """A match may overlap what it makes: then it repeats."""
    piece = out[-distance:]
    times, rest = divmod(length, distance)
    out += piece * times + piece[:rest]
