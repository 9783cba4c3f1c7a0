"""A package index on this machine with tiny wheels, which tells when it got them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def wheel(name: str, version: str, code: str, requires: Sequence[str] = ()) -> bytes:
    """A wheel with one module."""
    info = f"{name}-{version}.dist-info"
    asks = "".join(f"Requires-Dist: {text}\n" for text in requires)
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{asks}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={digest},{len(text.encode())}")
            archive.writestr(zipfile.ZipInfo(path), text)
        record = "\n".join([*rows, f"{info}/RECORD,,", ""])
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), record)
    return out.getvalue()


@dataclass
class Index:
    """What the server has.

    Args:
        files: by file name the content and the time of upload.
        asked: paths of all requests.
    """

    url: str = ""
    files: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def add(self, name: str, version: str, when: str, code: str = "", requires: Sequence[str] = ()) -> None:
        """Release a version."""
        self.files[f"{name}-{version}-py3-none-any.whl"] = (wheel(name, version, code, requires), when)

    def hash(self, name: str, version: str) -> str:
        """sha256 of its wheel."""
        return hashlib.sha256(self.files[f"{name}-{version}-py3-none-any.whl"][0]).hexdigest()

    def content(self, name: str) -> bytes | None:
        """A wheel, or its metadata."""
        wheel = self.files.get(name.removesuffix(".metadata"))
        if wheel is None or not name.endswith(".metadata"):
            return wheel and wheel[0]
        with zipfile.ZipFile(io.BytesIO(wheel[0])) as archive:
            return archive.read(next(n for n in archive.namelist() if n.endswith("/METADATA")))

    def page(self, project: str) -> bytes | None:
        """A project's page, as PEP 700 has it."""
        files = [
            {
                "filename": filename,
                "url": f"{self.url}/files/{filename}",
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                "size": len(content),
                "upload-time": when,
                "core-metadata": True,
            }
            for filename, (content, when) in self.files.items()
            if filename.split("-")[0] == project
        ]
        if not files:
            return None
        return json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": files}).encode()


@contextmanager
def served() -> Iterator[Index]:
    """An empty index that is reached at its ``url``."""
    index = Index()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            index.asked.append(self.path)
            kind, _, name = self.path.strip("/").partition("/")
            body: bytes | None = None
            if kind == "simple":
                body = index.page(name)
            elif kind == "files":
                body = index.content(name)
            self.send_response(200 if body is not None else 404)
            json_type = "application/vnd.pypi.simple.v1+json"
            self.send_header("Content-Type", json_type if kind == "simple" else "application/zip")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
