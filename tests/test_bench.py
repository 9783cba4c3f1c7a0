"""The benchmark reads sizes, times and targets right, and refuses what it cannot vouch for."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

import plain
from figures import Figure, middle, ratio, table
from sizes import size_of
from tfenv.index import IndexSettings

LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


class Layout:
    """An OCI layout in a tar, member by member."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}

    def blob(self, data: bytes | dict[str, Any]) -> str:
        content = data if isinstance(data, bytes) else json.dumps(data).encode()
        digest = hashlib.sha256(content).hexdigest()
        self.members[f"blobs/sha256/{digest}"] = content
        return f"sha256:{digest}"

    def image(self, *layers: bytes) -> str:
        described = [{"digest": self.blob(layer), "size": len(layer), "mediaType": LAYER} for layer in layers]
        return self.blob({"layers": described})

    def tar(self, *manifests: dict[str, Any]) -> io.BytesIO:
        self.members["index.json"] = json.dumps({"manifests": manifests}).encode()
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, content in self.members.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        out.seek(0)
        return out


def test_size_is_the_sum_of_the_layers() -> None:
    layout = Layout()
    size = size_of(layout.tar({"digest": layout.image(b"a" * 100, b"b" * 23)}))
    assert (size.compressed_bytes, size.layers, size.media_types) == (123, 2, (LAYER,))


def test_size_of_an_image_that_has_an_attestation_beside_it() -> None:
    layout = Layout()
    inner = {
        "manifests": [
            {"digest": layout.image(b"statement"), "platform": {"os": "unknown"}},
            {"digest": layout.image(b"c" * 50), "platform": {"os": "linux"}},
        ]
    }
    assert size_of(layout.tar({"digest": layout.blob(inner)})).compressed_bytes == 50


def test_a_layer_that_is_not_there_is_not_counted_as_small() -> None:
    layout = Layout()
    image = layout.image(b"a", b"b")
    del layout.members[f"blobs/sha256/{hashlib.sha256(b'b').hexdigest()}"]
    with pytest.raises(ValueError, match="not there in full"):
        size_of(layout.tar({"digest": image}))


def test_what_is_no_oci_layout_has_no_size() -> None:
    out = io.BytesIO()
    tarfile.open(fileobj=out, mode="w").close()
    out.seek(0)
    with pytest.raises(ValueError, match="not an OCI layout"):
        size_of(out)


def test_targets_are_judged_as_measured_not_as_shown() -> None:
    def figure(value: float) -> Figure:
        return Figure(name="f", value=value, unit="", command="c", target=0.6)

    assert figure(0.6).met is True
    assert figure(0.6001).met is False
    assert "| 0.600 | <= 0.600 | **missed** |" in table([figure(0.6001)])
    assert Figure(name="f", value=1, unit="s", command="c").met is None


def test_a_ratio_says_of_what() -> None:
    ours, theirs = (
        middle("ours", [3.0, 1.0, 2.0], command="a"),
        middle("theirs", [8.0, 8.0], command="b"),
    )
    made = ratio("r", ours, theirs, 0.2)
    assert (made.value, made.met, made.command) == (0.25, False, "(ours) / (theirs)")
    assert ours.samples == (3.0, 1.0, 2.0)
    assert "`a` (median of 3)" in table([ours])


@pytest.mark.parametrize("indent", [None, 2])
def test_when_pip_begins_to_install(indent: int | None) -> None:
    def event(text: str, second: int) -> str:
        data = base64.b64encode(text.encode()).decode()
        log = {"vertex": "v", "data": data, "timestamp": f"2026-01-01T00:00:{second:02}.123456789Z"}
        return json.dumps({"logs": [log]}, indent=indent) + "\n"

    text = event("Collecting tensorflow", 1) + event(f"{plain.INSTALLING}: six", 31) + "done\n"
    start = plain.seconds_of("2026-01-01T00:00:00Z")
    assert plain.installing_at(text.splitlines(keepends=True)) - start == pytest.approx(31.123456789)
    with pytest.raises(ValueError, match="installed nothing"):
        plain.installing_at(event("Collecting tensorflow", 1).splitlines(keepends=True))


def test_the_plain_build_gets_this_machines_index_but_not_its_folders() -> None:
    settings = IndexSettings(
        index_url="https://user:secret@index.example/simple",
        extra_index_urls=("file:///local", "https://more.example/simple"),
        cert="/etc/ca.pem",
        proxy="http://proxy.example:3128",
    )
    lines = plain.pip_conf(settings).splitlines()
    assert "index-url = https://user:secret@index.example/simple" in lines
    assert "extra-index-url = https://more.example/simple" in lines
    assert "cert = /run/secrets/ca.pem" in lines
    assert "proxy = http://proxy.example:3128" in lines


def test_without_settings_pip_has_its_defaults() -> None:
    text = plain.pip_conf(IndexSettings())
    assert "index-url" not in text
    assert "cert" not in text


def test_secrets_are_files_that_others_cannot_read(tmp_path: Path) -> None:
    wheel = tmp_path / "pip-1-py3-none-any.whl"
    wheel.write_bytes(b"pip")
    options = plain.prepare(tmp_path / "context", wheel, IndexSettings(cert="/etc/ca.pem"))
    assert options[1::2] == [f"id=pip.conf,src={tmp_path / 'pip.conf'}", "id=ca.pem,src=/etc/ca.pem"]
    assert (tmp_path / "pip.conf").stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in (tmp_path / "context").iterdir()) == ["Dockerfile", "pip.whl"]
