"""Tiny things that stand for big ones: a static program of 488 bytes, an OCI archive, an engine."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tfenv.engine import Completed

FIXTURES = Path(__file__).parent / "fixtures"


def program() -> bytes:
    """Prints /say, then its environment if it has arguments; status 7 if the first starts with !."""
    return base64.b64decode((FIXTURES / "say.elf.b64").read_text())


def context(folder: Path, dockerfile: str, say: str = "hello\n") -> Path:
    """A build context with the program (``say.bin``) and what it says (``say``)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "say.bin").write_bytes(program())
    (folder / "say.bin").chmod(0o755)
    (folder / "say").write_text(say)
    (folder / "Dockerfile").write_text(dockerfile)
    return folder


def name() -> str:
    """A name for an image that nobody else has."""
    return f"tfenv-test-{uuid.uuid4().hex[:12]}:x"


def run_of(answers: Mapping[str, Completed | str]) -> Callable[[Sequence[str]], Completed]:
    """A runner that answers by the arguments after the program's name; anything else fails."""

    def run(argv: Sequence[str]) -> Completed:
        asked = " ".join(argv[1:])
        for start, answer in answers.items():
            if asked.startswith(start):
                return answer if isinstance(answer, Completed) else Completed(0, answer, "")
        return Completed(127, "", f"no answer for {asked}")

    return run


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def oci_files(
    layers: Sequence[bytes] = (b"layer one", b"layer two"), media_type: str = "application/layer"
) -> dict[str, bytes]:
    """The members of an OCI archive."""
    files: dict[str, bytes] = {}

    def put(data: bytes) -> dict[str, object]:
        files[f"blobs/sha256/{digest(data).removeprefix('sha256:')}"] = data
        return {"digest": digest(data), "size": len(data)}

    def as_json(value: object) -> bytes:
        return json.dumps(value).encode()

    stored = [{**put(layer), "mediaType": media_type} for layer in layers]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Labels": {"a": "b"}},
        "rootfs": {"type": "layers", "diff_ids": [digest(b"raw " + layer) for layer in layers]},
    }
    manifest = {"schemaVersion": 2, "config": put(as_json(config)), "layers": stored}
    platform = {"architecture": "amd64", "os": "linux"}
    entry = {
        **put(as_json(manifest)),
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "platform": platform,
    }
    files["index.json"] = as_json({"schemaVersion": 2, "manifests": [entry]})
    files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    return files


def tar(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for member, data in files.items():
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path
