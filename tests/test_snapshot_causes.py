"""Every cause of a difference, seeded: named rightly, and not where it only looks like it."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from small import Members, file, folder, link, tarred
from snapshots import oci_archive
from tfenv import compare as archives
from tfenv import oci
from tfenv.snapshot import comparing
from tfenv.snapshot.causes import CAUSES
from tfenv.snapshot.comparing import OTHER_CAUSES, Comparison, compare, why
from tfenv.snapshot.sides import Image


def image_of(archive: Path) -> Image:
    return archives.image_of(oci.describe(archive), "a builder")


def pyc(code: bytes, *, time: int = 0, flags: int = 0) -> bytes:
    return b"\xcb\r\r\n" + flags.to_bytes(4, "little") + time.to_bytes(4, "little") + b"\x10\0\0\0" + code


PYC = "venv/__pycache__/six.cpython-311.pyc"
SOURCE = file("venv/six.py", b"x = 1\n")
SET_UID = file("bin/su", b"su", mode=0o4755)


def attribute(name: str, value: str) -> dict[str, Any]:
    return {"pax_headers": {f"SCHILY.xattr.{name}": value}}


@dataclass(frozen=True)
class Case:
    """Two layers that differ in one way, and what is said of it; no cause means that nothing explains it."""

    name: str
    before: Members
    after: Members
    causes: tuple[str, ...] = ()
    left: tuple[str, ...] = field(default=())


BOTH = [folder("etc"), file("etc/a", b"a")]
CASES = [
    Case("time stamp", [file("a", mtime=1)], [file("a", mtime=2)], ("time stamp",)),
    Case(
        "a time stamp and other bytes",
        [file("a", b"x", mtime=1)],
        [file("a", b"y", mtime=2)],
        ("time stamp",),
        ("content",),
    ),
    Case(
        "time inside .pyc",
        [file(PYC, pyc(b"code", time=1))],
        [file(PYC, pyc(b"code", time=2))],
        ("time inside",),
    ),
    Case(
        "another .pyc without a source",
        [file(PYC, pyc(b"code"))],
        [file(PYC, pyc(b"edoc"))],
        (),
        ("content",),
    ),
    Case(
        "time inside .gz",
        [file("doc/a.gz", gzip.compress(b"a", mtime=1))],
        [file("doc/a.gz", gzip.compress(b"a", mtime=2))],
        ("time inside",),
    ),
    Case(
        "another .gz",
        [file("doc/a.gz", gzip.compress(b"a", mtime=1))],
        [file("doc/a.gz", gzip.compress(b"b", mtime=1))],
        (),
        ("content",),
    ),
    Case(
        "pyc",
        [SOURCE, file(PYC, pyc(b"code", flags=1))],
        [SOURCE, file(PYC, pyc(b"edoc", flags=1))],
        ("pyc",),
    ),
    Case("pyc that is not there", [SOURCE, file(PYC, pyc(b"code"))], [SOURCE], ("pyc",)),
    Case(
        "pyc of another source",
        [SOURCE, file(PYC, pyc(b"code"))],
        [file("venv/six.py", b"x = 2\n"), file(PYC, pyc(b"edoc"))],
        (),
        ("content",),
    ),
    Case("log", [file("var/log/dpkg.log", b"now")], [file("var/log/dpkg.log", b"then")], ("log",)),
    Case("log elsewhere", [file("tmp/build.log", b"now")], [], ("log",)),
    Case(
        "no log",
        [file("etc/logrotate.conf", b"now")],
        [file("etc/logrotate.conf", b"then")],
        (),
        ("content",),
    ),
    Case(
        "cache",
        [file("var/cache/ldconfig/aux-cache", b"1")],
        [file("var/cache/ldconfig/aux-cache", b"2")],
        ("cache",),
    ),
    Case("no cache", [file("var/lib/cache.db", b"1")], [], (), ("presence",)),
    Case("machine", [file("etc/machine-id", b"1")], [file("etc/machine-id", b"2")], ("machine",)),
    Case(
        "a link in place of the machine's",
        [file("etc/resolv.conf", b"1")],
        [link("etc/resolv.conf", "/x")],
        (),
        ("content", "kind", "link"),
    ),
    Case(
        "package manager",
        [file("var/lib/dpkg/status-old", b"1")],
        [file("etc/passwd-", b"")],
        ("package manager",),
    ),
    Case(
        "what the package manager goes by",
        [file("var/lib/dpkg/status", b"1")],
        [file("var/lib/dpkg/status", b"2")],
        (),
        ("content",),
    ),
    Case(
        "installer",
        [file("venv/six-1.dist-info/RECORD", b"1")],
        [file("venv/six-1.dist-info/RECORD", b"2")],
        ("installer",),
    ),
    Case(
        "what a package says of itself",
        [file("venv/six-1.dist-info/METADATA", b"1")],
        [file("venv/six-1.dist-info/METADATA", b"2")],
        (),
        ("content",),
    ),
    Case(
        "owner",
        [folder("a"), file("a/b")],
        [folder("a", uid=1000, gid=1000), file("a/b", uid=1000, gid=1000)],
        ("owner",),
    ),
    Case(
        "the owner of one file",
        [folder("a"), file("a/b")],
        [folder("a"), file("a/b", uid=1000)],
        (),
        ("owner",),
    ),
    Case("two owners become one", [file("a"), file("b", uid=7)], [file("a"), file("b")], (), ("owner",)),
    Case("mode", [file("a", mode=0o644)], [file("a", mode=0o600)], ("mode",)),
    Case("executable by its owner", [file("a", mode=0o644)], [file("a", mode=0o744)], (), ("mode",)),
    Case("set-uid", [SET_UID], [file("bin/su", b"su", mode=0o755)], (), ("mode",)),
    Case("writable by all", [file("a", mode=0o644)], [file("a", mode=0o666)], (), ("mode",)),
    Case(
        "hard link",
        [file("a", b"1"), file("b", b"1")],
        [file("a", b"1"), link("b", "a", tarfile.LNKTYPE)],
        ("hard link",),
    ),
    Case(
        "a hard link to other bytes",
        [file("a", b"1"), file("b", b"2")],
        [file("a", b"1"), link("b", "a", tarfile.LNKTYPE)],
        (),
        ("kind", "content", "link"),
    ),
    Case(
        "snapshotter",
        [folder("a")],
        [folder("a", **attribute("trusted.overlay.origin", "x"))],
        ("snapshotter",),
    ),
    Case("an opaque folder", [folder("a")], [folder("a"), file("a/.wh..wh..opq", b"")], ("snapshotter",)),
    Case(
        "a file's capabilities",
        [file("a")],
        [file("a", **attribute("security.capability", "x"))],
        (),
        ("attributes",),
    ),
    Case("order", BOTH, BOTH[::-1], ("order",)),
    Case("other bytes", [file("a", b"1")], [file("a", b"2")], (), ("content",)),
    Case("a link to elsewhere", [link("a", "b")], [link("a", "c")], (), ("link",)),
]


def pax(members: Members) -> bytes:
    """A layer in the form that has room for attributes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def compared(before: Members, after: Members, tmp_path: Path) -> Comparison:
    return compare(
        image_of(oci_archive(tmp_path / "before.tar", [pax(before)])),
        image_of(oci_archive(tmp_path / "after.tar", [pax(after)])),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_difference_has_its_cause(case: Case, tmp_path: Path) -> None:
    made = compared(case.before, case.after, tmp_path)
    assert tuple(made.causes) == case.causes
    assert {aspect for one in made.differences for aspect in one.left} == set(case.left)
    assert made.outcome == ("different" if case.left else "explained difference")
    assert made.exit_code == (1 if case.left else comparing.EXIT_EXPLAINED)
    assert all(why(cause) for cause in made.causes)


def test_every_cause_is_seeded() -> None:
    seeded = {cause for case in CASES for cause in case.causes}
    assert seeded >= {cause.name for cause in CAUSES}
    assert set(OTHER_CAUSES) - seeded == {"compressor", "archive form", "layers", "builder"}  # below


def test_the_form_of_the_archive(tmp_path: Path) -> None:
    def written(format: int) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=format) as archive:
            archive.addfile(tarfile.TarInfo("a" * 120))
        return out.getvalue()

    images = [
        image_of(oci_archive(tmp_path / f"{format}.tar", [written(format)]))
        for format in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    ]
    made = compare(*images)
    assert (made.outcome, list(made.causes)) == ("explained difference", ["archive form"])
    assert made.levels == {"files": True, "layers": False, "configuration": False, "manifest": False}


def test_other_compression_is_the_same_content(tmp_path: Path) -> None:
    layer = tarred([file("a", b"a" * 1000)])
    made = compare(*(image_of(oci_archive(tmp_path / f"{k}.tar", [layer], kind=k)) for k in ("zstd", "gzip")))
    assert (made.outcome, list(made.causes), made.exit_code) == ("same content", ["compressor"], 0)
    assert made.levels == {"files": True, "layers": True, "configuration": True, "manifest": False}
    assert made.differences[0].detail.startswith("tar+zstd, ")


def test_the_same_files_in_other_layers(tmp_path: Path) -> None:
    a, b = [file("a")], [file("b")]
    one = image_of(oci_archive(tmp_path / "one.tar", [tarred(a), tarred(b)]))
    two = image_of(oci_archive(tmp_path / "two.tar", [tarred([*a, *b])]))
    made = compare(one, two)
    assert (made.outcome, list(made.causes)) == ("explained difference", ["layers"])
    assert made.levels["files"] and not made.levels["layers"]
    other = image_of(oci_archive(tmp_path / "other.tar", [tarred([*a, file("b", b"other")])]))
    assert compare(one, other).outcome == "different"


@pytest.mark.parametrize(
    ("change", "other_builder", "cause"),
    [
        ({"created": "2026-01-01T00:00:00Z"}, False, "time stamp"),
        ({"history": [{"created": "2026-01-01T00:00:00Z"}]}, False, "time stamp"),
        ({"history": [{"created_by": "RUN it"}]}, True, "builder"),
        ({"history": [{"created_by": "RUN it"}]}, False, ""),
        ({"config": {"Env": ["A=2"]}}, True, ""),
        ({"config": {"User": "root"}}, True, ""),
        ({"architecture": "arm64"}, True, ""),
    ],
)
def test_configurations(change: dict[str, object], other_builder: bool, cause: str, tmp_path: Path) -> None:
    layer = tarred([file("a")])
    one = image_of(oci_archive(tmp_path / "one.tar", [layer]))
    two = image_of(oci_archive(tmp_path / "two.tar", [layer], config=change))
    made = compare(one, replace(two, builder="another") if other_builder else two)
    assert tuple(made.causes) == ((cause,) if cause else ())
    assert made.outcome == ("explained difference" if cause else "different")
    assert made.levels == {"files": True, "layers": True, "configuration": False, "manifest": False}


def test_a_document_in_another_form(tmp_path: Path) -> None:
    layer = tarred([file("a")])
    one = image_of(oci_archive(tmp_path / "one.tar", [layer]))
    two = image_of(oci_archive(tmp_path / "two.tar", [layer], indent=2))
    assert one.config() == two.config() and one.config_digest != two.config_digest
    assert compare(one, two).outcome == "different"
    assert tuple(compare(one, replace(two, builder="another")).causes) == ("builder",)


def test_identical_images_are_not_read(tmp_path: Path) -> None:
    one = image_of(oci_archive(tmp_path / "one.tar", [tarred([file("a")])]))
    (tmp_path / "one.tar").unlink()
    made = compare(one, one)
    assert (made.outcome, made.exit_code, made.differences) == ("identical", 0, ())
    assert all(made.levels.values())
