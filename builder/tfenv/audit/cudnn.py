"""The exact cuDNN that a TensorFlow was compiled with, from the code that complains of an older one.

TensorFlow 2.4 to 2.15 ship no cudnn.h. Their libraries hold the three numbers of its version only as
constants of the code that says "Loaded runtime CuDNN library: X but source was compiled with: Y":
https://github.com/tensorflow/tensorflow/blob/v2.15.1/third_party/xla/xla/stream_executor/cuda/cuda_dnn.cc
"""

from __future__ import annotations

import re
import struct

from tfenv.audit.elf import Elf

SENTENCE = b" but source was compiled with: "
# The function is longer, but makes the text from the numbers just before it uses the sentence.
_BEFORE = 1024
# GCC keeps a VersionInfo{major, minor, patch} in memory: two numbers in one store, then the third.
_PAIR = rb"(?:\x48\xb8(.{8})|\x48\xc7(?:\x85.{4}|\x84\x24.{4}|\x44\x24.|\x45.)(.{4}))"
_THIRD = rb"\xc7(?:\x85.{4}|\x84\x24.{4}|\x44\x24.|\x45.)(.{4})"
_STORED = re.compile(_PAIR + rb".{0,16}?" + _THIRD, re.DOTALL)
# Clang writes each into its own buffer: `mov $N, %edi` or `xor %edi, %edi`, buffer to %rsi, call.
_WRITTEN = re.compile(rb"(?:\xbf(.{4})|\x31\xff)[\x48\x4c]\x89.\xe8(.{4})", re.DOTALL)


def compiled_with(elf: Elf, major: str) -> str:
    """``8.9.4``; "" where the library does not tell, or not beyond doubt.

    Args:
        major: the major version that the headers tell, which has to be the first of the three numbers.
    """
    found = set()
    for reference in elf.references(SENTENCE):
        code = elf.data[max(0, reference - _BEFORE) : reference]
        found |= _stored(code, int(major)) or _written(code, int(major))
    return next(iter(found)) if len(found) == 1 else ""


def _stored(code: bytes, major: int) -> set[str]:
    found = set()
    for match in _STORED.finditer(code):
        first, second = struct.unpack("<II", match[1] or match[2] + bytes(4))
        (third,) = struct.unpack("<I", match[3])
        if first == major and second < 100 and third < 100:
            found.add(f"{first}.{second}.{third}")
    return found


def _written(code: bytes, major: int) -> set[str]:
    """Three calls in a row of one function, the first of them with the major version."""
    calls = [
        (struct.unpack("<I", m[1])[0] if m[1] else 0, m.end() + struct.unpack("<i", m[2])[0])
        for m in _WRITTEN.finditer(code)
    ]
    return {
        ".".join(str(number) for number, _ in three)
        for three in zip(calls, calls[1:], calls[2:], strict=False)
        if three[0][0] == major
        and len({callee for _, callee in three}) == 1
        and all(number < 100 for number, _ in three)
    }
