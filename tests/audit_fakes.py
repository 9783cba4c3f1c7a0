"""Small made-up wheels, libraries and fatbins for the tests of the audit, and a server that gives them."""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests
from tfenv.simple_index import SimpleIndex

SENTENCE = b" but source was compiled with: "


def literals(data: bytes) -> bytes:
    """An LZ4 block of literals alone."""
    length, more = min(len(data), 15), b""
    if length == 15:
        rest = len(data) - 15
        more = b"\xff" * (rest // 255) + bytes([rest % 255])
    return bytes([length << 4]) + more + data


def ptx(target: str = "sm_80", isa: str = "8.1", kernel: str = "_Z3addv") -> tuple[int, int, int, bytes]:
    """A fatbin's entry of PTX, packed as nvcc does."""
    text = f"//\n.version {isa}\n.target {target}\n.address_size 64\n.visible .entry {kernel}(\n)\n".encode()
    return 1, int(re.sub(r"\D", "", target)), 0x2011, text


def sass(architecture: int, kernel: str = "_Z3addv", own: bool = False) -> tuple[int, int, int, bytes]:
    """A fatbin's entry of machine code."""
    cubin = b"\x7fELF\x02\x01".ljust(0x30, b"\0") + struct.pack("<I", 0x800 if own else 0)
    return 2, architecture, 0x2011, cubin.ljust(64, b"\0") + f"\0.text.{kernel}\0".encode()


def fatbin(*entries: tuple[int, int, int, bytes]) -> bytes:
    """A fatbin of these (kind, architecture, flags, payload)."""
    body = b""
    for kind, architecture, flags, payload in entries:
        packed = literals(payload) if flags & 0x2000 else payload
        padded = packed.ljust(-(-len(packed) // 8) * 8, b"\0")
        head = struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(padded), len(packed), 0, 1, 8, architecture)
        body += head.ljust(40, b"\0") + struct.pack("<QQQ", flags, 0, len(payload)) + padded
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def elf(sections: dict[str, bytes], needed: tuple[str, ...] = (), runpath: str = "") -> bytes:
    """A shared library; each section's address is its offset plus 4096."""
    strings, dynamic = b"\0", []
    for tag, text in [*((1, name) for name in needed), *([(29, runpath)] if runpath else [])]:
        dynamic.append((tag, len(strings)))
        strings += text.encode() + b"\0"
    offset = 64
    placed: list[tuple[str, int, bytes]] = []
    for name, data in {**sections, ".dynstr": strings}.items():
        placed.append((name, offset, data))
        offset += -(-len(data) // 8) * 8
    dynamic.append((5, placed[-1][1] + 4096))
    table = b"".join(struct.pack("<QQ", *entry) for entry in [*dynamic, (0, 0)])
    placed.append((".dynamic", offset, table))
    offset += len(table)
    names = b"\0" + b"\0".join(name.encode() for name in [*(p[0] for p in placed), ".shstrtab"]) + b"\0"
    placed.append((".shstrtab", offset, names))
    offset += -(-len(names) // 8) * 8
    file = bytearray(offset)
    file[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", file, 0x28, offset)
    struct.pack_into("<HHH", file, 0x3A, 64, len(placed), len(placed) - 1)
    for name, start, data in placed:
        file[start : start + len(data)] = data
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        row = struct.pack("<IIQQQQ", at, 1, 2, start + 4096, start, len(data))
        file += row.ljust(64, b"\0")
    return bytes(file)


def code(instructions: bytes) -> bytes:
    """A .text at offset 64 whose last instruction takes the address of the sentence in .rodata."""
    size = -(-(len(instructions) + 7) // 8) * 8
    target = 64 + size + 1  # .rodata follows, and starts with a zero
    return instructions + b"\x48\x8d\x05" + struct.pack("<i", target - (64 + len(instructions) + 7))


def stored(major: int, minor: int, patch: int) -> bytes:
    """How GCC keeps a version."""
    both = struct.pack("<II", major, minor)
    return (
        b"\x48\xb8"
        + both
        + b"\x48\x89\x85\x28\xfc\xff\xff\xc7\x85\x30\xfc\xff\xff"
        + struct.pack("<I", patch)
    )


def written(major: int, minor: int, patch: int) -> bytes:
    """How Clang writes a version: three calls of the function at offset 9000."""
    made = b""
    for number in (major, minor, patch):
        value = b"\xbf" + struct.pack("<I", number) if number else b"\x31\xff"
        made += value + b"\x48\x89\xde"
        made += b"\xe8" + struct.pack("<i", 9000 - len(made) - 5) + b"\x90"
    return made


def library(
    fatbins: bytes = b"",
    generated: bytes = b"",
    relocatable: bytes = b"",
    instructions: bytes = b"\x90" * 8,
    strings: bytes = b"",
    runpath: str = "",
) -> bytes:
    """A library of TensorFlow, with what is wanted in it."""
    sections = {
        ".text": code(instructions),
        ".rodata": b"\0" + SENTENCE + b"\0" + strings + b"\0" * (-len(strings) % 8) + generated,
        ".nv_fatbin": fatbins,
        "__nv_relfatbin": relocatable,
    }
    return elf(sections, ("libtensorflow_framework.so.2",), runpath)


REQUIRES = 'Requires-Dist: nvidia-cudnn-cu12==8.9.4.25; extra == "and-cuda"'
INCLUDE = "tensorflow/include/third_party/gpus"


def members(version: str, requires: str = REQUIRES, **changes: bytes | str | None) -> dict[str, bytes]:
    """A TensorFlow's small files. ``changes``: cuda_config, cuda, cudnn, nccl, build_info."""
    info = (
        "import collections\nbuild_info = collections.OrderedDict([('cpu_compiler', 'clang'), "
        "('cuda_compute_capabilities', ['sm_50', 'compute_80']), ('cuda_version', '12.2'), "
        "('cudnn_version', '8'), ('is_cuda_build', True)])\n"
    )
    found: dict[str, bytes | str | None] = {
        f"{INCLUDE}/cuda/cuda_config.h": '#define TF_CUDA_VERSION "12.2"\n#define TF_CUDNN_VERSION "8"\n'
        '#define TF_CUDART_VERSION "12"\n#define TF_CUBLAS_VERSION "12"\n',
        f"{INCLUDE}/cuda/include/cuda.h": "#define CUDA_VERSION 12020\n",
        "tensorflow/include/external/nccl_archive/src/nccl.h": "#define NCCL_MAJOR 2\n#define NCCL_MINOR 16\n"
        "#define NCCL_PATCH 5\n",
        "tensorflow/python/platform/build_info.py": info,
        f"tensorflow-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: tensorflow\n"
        f"Version: {version}\nRequires-Python: >=3.9\n{requires}\n\nText.\n",
    }
    places = {
        "cuda_config": f"{INCLUDE}/cuda/cuda_config.h",
        "cuda": f"{INCLUDE}/cuda/include/cuda.h",
        "cudnn": f"{INCLUDE}/cudnn/include/cudnn_version.h",
        "nccl": "tensorflow/include/external/nccl_archive/src/nccl.h",
        "build_info": "tensorflow/python/platform/build_info.py",
    }
    found |= {places[key]: value for key, value in changes.items() if key in places}
    kept = {name: data for name, data in found.items() if data is not None}
    return {name: data.encode() if isinstance(data, str) else data for name, data in kept.items()}


def wheel(files: dict[str, bytes]) -> bytes:
    """A wheel of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def wheel_name(version: str, python: str = "3.11") -> str:
    """The file name of a manylinux wheel."""
    tag = "cp" + python.replace(".", "")
    return f"tensorflow-{version}-{tag}-{tag}-manylinux_2_17_x86_64.whl"


class IndexServer(ThreadingHTTPServer):
    """An index on this host.

    Attributes:
        files: wheels by name; ranges: whether parts of files are sent; asked: (name, range) of each request.
        spoil: called before a file is sent, may change ``files`` or send an answer itself (then true).
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.ranges = True
        self.etags = False
        self.asked: list[tuple[str, str | None]] = []
        self.spoil: Callable[[_Handler, str], bool] = lambda _handler, _name: False
        self.yanked: dict[str, str] = {}

    @property
    def url(self) -> str:
        """The simple index."""
        return f"http://127.0.0.1:{self.server_address[1]}/simple"

    def simple(self) -> SimpleIndex:
        """It, as the index of a user."""
        return SimpleIndex((self.url,), requests.Session())

    def listing(self) -> dict[str, Any]:
        """What the index says."""
        files = [
            {
                "filename": name,
                "url": f"../../files/{name}",
                "size": len(data),
                "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                "upload-time": "2024-03-08T23:47:37.123456Z",
                "yanked": self.yanked.get(name, False),
            }
            for name, data in self.files.items()
        ]
        return {"meta": {"api-version": "1.1"}, "name": "tensorflow", "files": files}


class _Handler(BaseHTTPRequestHandler):
    server: IndexServer

    def do_GET(self) -> None:
        name = self.path.rsplit("/", 1)[-1]
        if self.path == "/simple/tensorflow/":
            self.say(json.dumps(self.server.listing()).encode(), "application/vnd.pypi.simple.v1+json")
            return
        self.server.asked.append((name, self.headers.get("Range")))
        if self.server.spoil(self, name):
            return
        data = self.server.files.get(name)
        if data is None:
            self.send_error(404)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not wanted or not self.server.ranges:
            self.say(data, "application/octet-stream")
            return
        start, end = int(wanted[1]), min(int(wanted[2]) + 1, len(data))
        if start >= len(data):
            self.send_error(416)
            return
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        if self.server.etags:
            self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.end_headers()
        self.wfile.write(data[start:end])

    def say(self, data: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[IndexServer]:
    """An index that runs meanwhile."""
    server = IndexServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
