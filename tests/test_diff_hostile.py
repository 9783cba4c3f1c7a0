"""Whatever an image holds, it is read, or refused in words: nothing else comes out of it."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import image_files
import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st
from tfenv import sbom
from tfenv.diff import installed
from tfenv.diff.describe import of_image
from tfenv.diff.layer import read_layer
from tfenv.diff.layout import Image, Stored, read_image
from tfenv.diff.markdown import to_markdown
from tfenv.diff.model import Layer
from tfenv.diff.places import archive
from tfenv.diff.sections import compare
from tfenv.diff.stream import Streamed
from tfenv.diff.telling import to_json, to_text
from tfenv.errors import IntegrityError, UsageError
from tfenv.sbom import licences

MEMBERS = [
    small.folder("usr/"),
    small.file("usr/a", b"a" * 600),
    small.link("usr/l", "a"),
    small.link("usr/h", "usr/a", tarfile.LNKTYPE),
    small.file("x" * 150, b"long"),
    *(small.file(name, data) for name, data in image_files.dist_info("numpy", "1.0").items()),
]
PLAIN = small.tarred(MEMBERS)
VALID = re.compile(r"[A-Za-z0-9.+() -]+")
json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    at=st.integers(0, len(PLAIN) - 1),
    data=st.binary(min_size=1, max_size=24),
    kind=st.sampled_from(["", "zstd", "gzip"]),
)
@settings(max_examples=150, deadline=None)
def test_a_layer_with_changed_bytes(at: int, data: bytes, kind: str) -> None:
    changed = PLAIN[:at] + data + PLAIN[at + len(data) :]
    try:
        found = read_layer(io.BytesIO(small.PACK[kind](changed)))
    except IntegrityError as error:
        assert error.remedy
        return
    assert all(isinstance(path, str) and "\x1b" not in path for path in found.entries)


@given(
    at=st.integers(0, 2000), data=st.binary(min_size=1, max_size=24), kind=st.sampled_from(["zstd", "gzip"])
)
@settings(max_examples=100, deadline=None)
def test_a_packed_layer_with_changed_bytes(at: int, data: bytes, kind: str) -> None:
    packed = small.PACK[kind](PLAIN)
    at %= len(packed)
    try:
        read_layer(io.BytesIO(packed[:at] + data + packed[at + len(data) :]))
    except IntegrityError as error:
        assert error.remedy


@given(index=json_values, manifest=json_values)
@settings(max_examples=150, deadline=None)
def test_documents_of_any_shape(index: Any, manifest: Any) -> None:
    files, descriptor = image_files.blobs([])
    body = json.dumps(manifest).encode()
    name = image_files.digest(body)
    for listed in (
        index,
        {"manifests": index},
        {"manifests": [{"digest": name}]},
        {"manifests": [descriptor]},
    ):
        layout = {**files, f"blobs/sha256/{name[7:]}": body, "index.json": json.dumps(listed).encode()}
        try:
            read_image(Streamed([image_files.tar(layout)], "it", lambda _, make: make()), "it")
        except (IntegrityError, UsageError) as error:
            assert error.remedy


@given(config=json_values, inner=json_values)
@settings(max_examples=150, deadline=None)
def test_a_configuration_of_any_shape_is_described_compared_and_listed(config: Any, inner: Any) -> None:
    names = ("config", "rootfs", "history", "created", "os")
    shaped = config if isinstance(config, dict) else dict.fromkeys(names, config)
    shaped = {
        **shaped,
        "config": inner if isinstance(inner, dict) else dict.fromkeys(("Env", "Labels", "Cmd"), inner),
    }
    image = Image(digest="", config=shaped, stored=(Stored("a", "b", None),), layers=(Layer({}, {}, 0),))
    found = of_image("it", image)
    told = compare(found, of_image("other", Image(digest="", config={}, stored=(), layers=())))
    json.dumps(to_json(told))
    assert "\x1b" not in to_text(told, full=True) + to_markdown(told)
    for form in sbom.FORMATS.values():
        json.dumps(form(sbom.of_image(found, None)))


@given(text=st.text(max_size=300))
@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize(
    "head", ["", "Package: a\nVersion: 1\n", "Name: a\nVersion: 1\n", "Format: x\n\nFiles: *\nLicense: "]
)
def test_texts_of_any_shape(head: str, text: str) -> None:
    texts = {
        "var/lib/dpkg/status": head + text,
        "a/b.dist-info/METADATA": head + text,
        "etc/os-release": head + text,
    }
    for table in (installed.debian(texts), installed.wheels(texts), installed.system(texts)):
        for name, value in table.values.items():
            assert len(name) <= 500 and "\n" not in name + value
    for licence in (licences.of_copyright(head + text), licences.of_metadata(head + text)):
        assert licence.words
        assert not licence.expression or VALID.fullmatch(licence.expression)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(UsageError, match="no plain file"), archive(path):
        pass


def test_a_link_that_leads_round_is_left_alone(tmp_path: Path) -> None:
    members = [small.link("usr/share/doc/a", "b"), small.link("usr/share/doc/b", "a")]
    found = image_files.described(tmp_path, [small.tarred(members)])
    assert licences.copyright_text("a", found) == ""
